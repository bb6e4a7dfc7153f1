#include "cli/serve_models.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/safetensors.h"

namespace isomer::cli {

namespace {
using nlohmann::json;

Index size_of(const json& from, const char* name) {
  const Index size = from.at(name).get<Index>();
  require(size >= 1, name, "expected a number >= 1, got ", size);
  return size;
}

ModelConfig config_of(const json& from) {
  return bench_config(from.at("preset").get<std::string>(),
                      {size_of(from, "layers"), size_of(from, "width"), size_of(from, "vocabulary")});
}

/// The arrays that are saved beside the parameters, under names that no parameter has.
using TokensByName = std::map<std::string, std::span<const std::int64_t>>;

void save(const json& request, const BenchModel& model, const TokensByName& tokens) {
  if (!request.contains("save")) return;
  Tensors all = model.parameters.tensors();
  for (const auto& [name, numbers] : tokens) {
    Tensor tensor(Type::i64, {Index(numbers.size())});
    std::ranges::copy(numbers, tensor.data<std::int64_t>());
    all.emplace(name, std::move(tensor));
  }
  write_safetensors(request.at("save").get<std::string>(), all);
}
}  // namespace

struct ModelServer::Training : BenchTraining {
  Training(const json& request, Context& context)
      : BenchTraining(config_of(request.at("case")), size_of(request.at("case"), "B"), size_of(request.at("case"), "T"),
                      context) {
    save(request, *this, {{"tokens", tokens}, {"labels", labels}});
  }
};

struct ModelServer::Generation : BenchModel {
  Tape<float> tape;
  std::vector<std::int64_t> prompt;
  ModelState<float> state;
  std::int64_t first;

  Generation(const json& request, Context& context)
      : BenchModel(config_of(request.at("case"))),
        tape(context, Record::no),
        prompt(draw(size_of(request.at("case"), "prompt"), 1)),
        state(model.start(1)) {
    const std::string weights = request.at("case").at("weights").get<std::string>();
    require(weights == "float32" || weights == "bf16", "weights", "expected float32 or bf16, got ", weights);
    save(request, *this, {{"tokens", prompt}});
    if (weights == "bf16") parameters.round_to_bf16();
    first = likeliest(model.prefill(tape, prompt, state));
  }
  [[nodiscard]] static std::int64_t likeliest(View<const float, 2> logits) {
    return std::max_element(logits.data, logits.data + logits.shape[1]) - logits.data;
  }
};

ModelServer::ModelServer() = default;
ModelServer::~ModelServer() = default;

template <class Work>
Work& ModelServer::prepare(const json& request, Context& context) {
  const std::string key = request.at("op").dump() + request.at("case").dump();
  if (kept_ == nullptr || key_ != key) {
    kept_.reset();
    kept_ = std::make_unique<Work>(request, context);
    key_ = key;
  }
  return static_cast<Work&>(*kept_);
}

json ModelServer::train(const json& request, Context& context) {
  Training& training = prepare<Training>(request, context);
  json seconds = json::array(), losses = json::array();
  for (int i = 0; i < request.at("repeat").get<int>(); ++i) {
    const Stopwatch watch;
    losses.push_back(training.step());
    seconds.push_back(watch.seconds());
  }
  return {{"seconds", seconds},
          {"losses", losses},
          {"parameters", training.parameters.trained_size()},
          {"law_flops_per_token", training.law_flops_per_token()},
          {"isa", name_of(context.isa())},
          {"peak_mib", peak_memory_mib()}};
}

json ModelServer::generate(const json& request, Context& context) {
  Generation& generation = prepare<Generation>(request, context);
  ModelState<float> state = generation.state;
  json seconds = json::array(), tokens = json::array();
  std::int64_t token = generation.first;
  for (int i = 0; i < request.at("repeat").get<int>(); ++i) {
    tokens.push_back(token);
    const Stopwatch watch;
    token = Generation::likeliest(generation.model.step(generation.tape, {&token, 1}, state));
    generation.tape.clear();
    seconds.push_back(watch.seconds());
  }
  return {{"seconds", seconds},
          {"tokens", tokens},
          {"bytes", generation.model.step_bytes(generation.parameters) + state.bytes()},
          {"state_bytes", state.bytes()},
          {"isa", name_of(context.isa())},
          {"peak_mib", peak_memory_mib()}};
}

}  // namespace isomer::cli
