#include "isomer/bench/worker_models.h"

#include <algorithm>
#include <map>
#include <span>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/safetensors.h"
#include "isomer/models/prompt.h"

namespace isomer {

namespace {
Index size_of(const Json& from, const char* name) {
  const Index size = from.at(name).integer();
  require(size >= 1, name, "expected a number >= 1, got ", size);
  return size;
}

ModelConfig config_of(const Json& from) {
  return bench_config(from.at("preset").text(), {size_of(from, "layers"), size_of(from, "width"), size_of(from, "vocabulary")});
}

/// The arrays that are saved beside the parameters, under names that no parameter has.
using TokensByName = std::map<std::string, std::span<const std::int64_t>>;

void save(const Json& request, const BenchModel& model, const TokensByName& tokens) {
  const Json* const path = request.find("save");
  if (path == nullptr) return;
  Tensors all = model.parameters.tensors();
  for (const auto& [name, numbers] : tokens) {
    Tensor tensor(Type::i64, {Index(numbers.size())});
    std::ranges::copy(numbers, tensor.data<std::int64_t>());
    all.emplace(name, std::move(tensor));
  }
  write_safetensors(path->text(), all);
}

std::span<const float> row_of(View<const float, 2> logits) { return {logits.data, std::size_t(logits.shape[1])}; }
}  // namespace

Type storage_in(const Json& from) {
  const std::string& weights = from.at("weights").text();
  require(weights == "float32" || weights == "bf16", "weights", "expected float32 or bf16, got ", weights);
  return weights == "bf16" ? Type::bf16 : Type::f32;
}

struct ModelWorker::Training : BenchTraining {
  Training(const Json& request, Context& context)
      : BenchTraining(config_of(request.at("case")), size_of(request.at("case"), "B"), size_of(request.at("case"), "T"),
                      context) {
    save(request, *this, {{"tokens", tokens}, {"labels", labels}});
  }
};

struct ModelWorker::Generation : BenchModel {
  Tape<float> tape;
  std::vector<std::int64_t> prompt;
  ModelState<float> state;
  std::int64_t first;

  Generation(const Json& request, Context& context)
      : BenchModel(config_of(request.at("case")), storage_in(request.at("case"))),
        tape(context, Record::no),
        prompt(draw(size_of(request.at("case"), "prompt"), 1)),
        state(model.start(1)) {
    // The peer computes in float32 whatever is stored here.
    if (storage_in(request.at("case")) == Type::f32)
      save(request, *this, {{"tokens", prompt}});
    else if (request.find("save") != nullptr)
      save(request, BenchModel(model.config()), {{"tokens", prompt}});
    first = likeliest(row_of(model.prefill(tape, prompt, state)));
  }
};

ModelWorker::ModelWorker() = default;
ModelWorker::~ModelWorker() = default;

template <class Work>
Work& ModelWorker::prepare(const Json& request, Context& context) {
  const std::string key = request.at("op").dump() + request.at("case").dump();
  if (kept_ == nullptr || key_ != key) {
    kept_.reset();
    kept_ = std::make_unique<Work>(request, context);
    key_ = key;
  }
  return static_cast<Work&>(*kept_);
}

Json ModelWorker::train(const Json& request, Context& context) {
  Training& training = prepare<Training>(request, context);
  std::vector<double> seconds, losses;
  for (int i = 0; i < request.at("repeat").integer(); ++i) {
    const Stopwatch watch;
    losses.push_back(training.step());
    seconds.push_back(watch.seconds());
  }
  return Json::object({{"seconds", seconds},
                       {"losses", losses},
                       {"parameters", training.parameters.trained_size()},
                       {"law_flops_per_token", training.law_flops_per_token()},
                       {"isa", name_of(context.isa())},
                       {"peak_mib", peak_memory_mib()}});
}

Json ModelWorker::generate(const Json& request, Context& context) {
  Generation& generation = prepare<Generation>(request, context);
  ModelState<float> state = generation.state;
  std::vector<double> seconds;
  std::vector<std::int64_t> tokens;
  std::int64_t token = generation.first;
  for (int i = 0; i < request.at("repeat").integer(); ++i) {
    tokens.push_back(token);
    const Stopwatch watch;
    token = likeliest(row_of(generation.model.step(generation.tape, {&token, 1}, state)));
    generation.tape.clear();
    seconds.push_back(watch.seconds());
  }
  return Json::object({{"seconds", seconds},
                       {"tokens", tokens},
                       {"bytes", generation.model.step_bytes(generation.parameters) + state.bytes()},
                       {"state_bytes", state.bytes()},
                       {"isa", name_of(context.isa())},
                       {"peak_mib", peak_memory_mib()}});
}

}  // namespace isomer
