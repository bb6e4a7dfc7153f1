#include "cli/serve.h"

#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/serve_models.h"
#include "cli/timing.h"
#include "isomer/base/error.h"
#include "isomer/kernels/gemm/peak.h"

namespace isomer::cli {

namespace {
using nlohmann::json;

BenchCase case_of(const json& from) {
  BenchCase what;
  what.subject = from.at("subject").get<std::string>();
  what.variant = from.at("variant").get<std::string>();
  what.direction = from.at("direction").get<std::string>();
  const bool step = what.direction == "step";
  if (!step && what.direction != "forward" && what.direction != "backward" && what.direction != "forward+backward")
    throw Error("expected the direction forward, backward, forward+backward or step, got " + what.direction);
  what.form = from.contains("form") ? form_named(from["form"].get<std::string>()) : step ? Form::step : Form::chunk;
  for (auto [name, size] : {std::pair{"B", &what.B}, {"T", &what.T}, {"H", &what.H}, {"K", &what.K}, {"V", &what.V}}) {
    *size = from.at(name).get<Index>();
    if (*size < 1) throw Error(std::string("expected ") + name + " >= 1, got " + std::to_string(*size));
  }
  what.S = from.value("S", Index{0});
  what.chunk = from.value("chunk", Index{0});
  // Drivers send a window with every case.
  what.window = what.variant == "window" ? from.at("window").get<Index>() : 0;
  return what;
}

class Server {
 public:
  json answer(const std::string& line) {
    try {
      const json request = json::parse(line);
      const std::string op = request.at("op").get<std::string>();
      if (op == "time") return time(request.at("case"), request.at("repeat").get<int>());
      if (op == "peak") return {{"gflops", measure_peak(context(request.at("threads").get<int>()))}};
      if (op == "train") return models_.train(request, context(request.at("case").at("threads").get<int>()));
      if (op == "generate") return models_.generate(request, context(request.at("case").at("threads").get<int>()));
      if (op == "read")
        return {{"gb_per_s", measure_read(context(request.at("threads").get<int>()), request.at("bytes").get<Index>())}};
      return {{"skip", "unknown op " + op}};
    } catch (const std::bad_alloc&) {
      return {{"skip", "out of memory"}};
    } catch (const std::exception& problem) {
      return {{"skip", problem.what()}};
    }
  }

 private:
  struct Prepared {
    json key;
    BenchCase what;
    BenchWork work;
  };

  json time(const json& from, int repeat) {
    Context& where = context(from.at("threads").get<int>());
    const Prepared& prepared = prepare(from, where);
    json seconds = json::array();
    for (int i = 0; i < repeat; ++i) seconds.push_back(seconds_of(prepared.work, where));
    return {{"seconds", seconds}, {"flops", prepared.work.flops}, {"form", name_of(prepared.what.form)}};
  }

  /// Rounds of the same few cases come again and again, so the last ones are kept.
  const Prepared& prepare(const json& from, Context& where) {
    constexpr std::size_t kKept = 4;
    for (const Prepared& kept : kept_)
      if (kept.key == from) return kept;
    if (kept_.size() == kKept) kept_.pop_back();
    const BenchCase what = case_of(from);
    kept_.push_front({from, what, find_law(what.subject).prepare(what)});
    kept_.front().work.run(where);
    return kept_.front();
  }

  Context& context(int threads) {
    if (threads < 1 || threads > 1024) throw Error("expected threads from 1 to 1024, got " + std::to_string(threads));
    auto& one = contexts_[threads];
    if (one == nullptr) one = std::make_unique<Context>(threads);
    return *one;
  }

  std::map<int, std::unique_ptr<Context>> contexts_;
  std::deque<Prepared> kept_;
  ModelServer models_;  // after the contexts that its tapes use
};
}  // namespace

void serve() {
  Server server;
  for (std::string line; std::getline(std::cin, line);) std::cout << server.answer(line).dump() << std::endl;
}

}  // namespace isomer::cli
