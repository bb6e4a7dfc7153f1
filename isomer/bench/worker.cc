#include "isomer/bench/worker.h"

#include <deque>
#include <map>

#include "isomer/base/error.h"
#include "isomer/bench/timing.h"
#include "isomer/bench/worker_folders.h"
#include "isomer/bench/worker_models.h"
#include "isomer/kernels/gemm/peak.h"

namespace isomer {

namespace {
/// A member that may be left out.
Index size_or_zero(const Json& from, const char* name) {
  const Json* const found = from.find(name);
  return found == nullptr ? 0 : found->integer();
}

BenchCase case_of(const Json& from) {
  BenchCase what;
  what.subject = from.at("subject").text();
  what.variant = from.at("variant").text();
  what.direction = from.at("direction").text();
  const bool step = what.direction == "step";
  if (!step && what.direction != "forward" && what.direction != "backward" && what.direction != "forward+backward")
    throw Error("expected the direction forward, backward, forward+backward or step, got " + what.direction);
  const Json* const form = from.find("form");
  what.form = form != nullptr ? form_named(form->text()) : step ? Form::step : Form::chunk;
  for (auto [name, size] : {std::pair{"B", &what.B}, {"T", &what.T}, {"H", &what.H}, {"K", &what.K}, {"V", &what.V}}) {
    *size = from.at(name).integer();
    if (*size < 1) throw Error(std::string("expected ") + name + " >= 1, got " + std::to_string(*size));
  }
  what.S = size_or_zero(from, "S");
  what.chunk = size_or_zero(from, "chunk");
  // Drivers send a window with every case.
  what.window = what.variant == "window" ? from.at("window").integer() : 0;
  return what;
}

int threads_in(const Json& from) { return int(from.at("threads").integer()); }
int repeats_in(const Json& from) { return int(from.at("repeat").integer()); }
}  // namespace

class BenchWorker::Work {
 public:
  Json answer(const std::string& line) {
    try {
      const Json request = Json::parse(line, "request");
      const std::string& op = request.at("op").text();
      if (op == "time") return time(request.at("case"), repeats_in(request));
      if (op == "peak") return Json::object({{"gflops", measure_peak(context(threads_in(request)))}});
      if (op == "train") return models_.train(request, context(threads_in(request.at("case"))));
      if (op == "generate") return models_.generate(request, context(threads_in(request.at("case"))));
      if (op == "model") return folders_.run(request, context(threads_in(request.at("case"))));
      if (op == "read") {
        const double speed = measure_read(context(threads_in(request)), request.at("bytes").integer());
        return Json::object({{"gb_per_s", speed}});
      }
      return Json::object({{"skip", "unknown op " + op}});
    } catch (const std::bad_alloc&) {
      return Json::object({{"skip", "out of memory"}});
    } catch (const std::exception& problem) {
      return Json::object({{"skip", problem.what()}});
    }
  }

 private:
  struct Prepared {
    Json key;
    BenchCase what;
    BenchWork work;
  };

  Json time(const Json& from, int repeat) {
    Context& where = context(threads_in(from));
    const Prepared& prepared = prepare(from, where);
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) seconds.push_back(seconds_of(prepared.work, where));
    return Json::object({{"seconds", seconds}, {"flops", prepared.work.flops}, {"form", name_of(prepared.what.form)}});
  }

  /// Rounds of the same few cases come again and again, so the last ones are kept.
  const Prepared& prepare(const Json& from, Context& where) {
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
  ModelWorker models_;  // after the contexts that its tapes use
  FolderWorker folders_;
};

BenchWorker::BenchWorker() : work_(std::make_unique<Work>()) {}
BenchWorker::~BenchWorker() = default;

std::string BenchWorker::answer(const std::string& request) { return work_->answer(request).dump(); }

}  // namespace isomer
