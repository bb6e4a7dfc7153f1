#include "isomer/bench/worker_folders.h"

#include <optional>
#include <span>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"
#include "isomer/base/stopwatch.h"
#include "isomer/bench/worker_models.h"
#include "isomer/models/prompt.h"

namespace isomer {

namespace {
// How many logits are compared with those of a peer.
constexpr Index kCompared = 64;

std::vector<std::int64_t> integers(const Json& list) {
  std::vector<std::int64_t> all;
  for (const Json& one : list.items()) all.push_back(one.integer());
  return all;
}
}  // namespace

struct FolderWorker::Work {
  std::unique_ptr<LoadedModel> loaded;
  Tape<float> tape;
  std::vector<double> prefill, decode;  // seconds, of the last request
  std::vector<std::int64_t> next;
  std::vector<float> logits;  // of the prompt's last token
  Index bytes = 0;

  Work(const Json& from, Context& context)
      : loaded(load_model(from.at("model").text(), storage_in(from))), tape(context, Record::no) {
    if (const Json* compute = from.find("compute"); compute != nullptr && compute->text() == "bf16")
      loaded->parameters.multiply_in_bf16();
  }

  void read(std::span<const std::int64_t> prompt, std::optional<ModelState<float>>& state) {
    const Stopwatch watch;
    const Model<float>& model = loaded->model;
    if (model.config().kind == ModelKind::language) {
      state.emplace(model.start(1));
      const View<const float, 2> row = model.prefill(tape, prompt, *state);
      logits.assign(row.data, row.data + row.shape[1]);
    } else {
      const Var<float> all = model.logits(tape, {.B = 1, .T = Index(prompt.size()), .tokens = prompt}).logits;
      logits.assign(all.value.data + all.value.size() - all.dim(3), all.value.data + all.value.size());
    }
    tape.clear();
    prefill.push_back(watch.seconds());
    next = {likeliest(logits)};
  }

  void say(Index tokens, ModelState<float>& state) {
    bytes = loaded->model.step_bytes(loaded->parameters) + state.bytes();
    for (Index t = 0; t < tokens; ++t) {
      const Stopwatch watch;
      const View<const float, 2> row = loaded->model.step(tape, {&next.back(), 1}, state);
      next.push_back(likeliest({row.data, std::size_t(row.shape[1])}));
      tape.clear();
      decode.push_back(watch.seconds());
    }
  }
};

FolderWorker::FolderWorker() = default;
FolderWorker::~FolderWorker() = default;

Json FolderWorker::run(const Json& request, Context& context) {
  const std::vector<std::int64_t> prompt = integers(request.at("prompt"));
  require(!prompt.empty(), "prompt", "expected tokens, got none");
  const std::string key = request.at("case").dump();
  double load = 0, first = 0;
  const Stopwatch since_start;
  if (work_ == nullptr || key != key_) {
    work_.reset();
    work_ = std::make_unique<Work>(request.at("case"), context);
    key_ = key;
    load = since_start.seconds();
  }
  Work& work = *work_;
  work.prefill.clear();
  work.decode.clear();
  for (int i = 0; i < request.at("repeat").integer(); ++i) {
    std::optional<ModelState<float>> state;
    work.read(prompt, state);
    if (i == 0) first = since_start.seconds();
    if (state) work.say(request.at("tokens").integer(), *state);
  }
  const auto compared = work.logits.begin() + std::min(kCompared, Index(work.logits.size()));
  return Json::object({{"load", load},
                       {"first", first},
                       {"prefill", work.prefill},
                       {"decode", work.decode},
                       {"next", work.next},
                       {"logits", std::vector<double>(work.logits.begin(), compared)},
                       {"bytes", work.bytes},
                       {"copied_bytes", work.loaded->parameters.own_bytes()},
                       {"isa", name_of(context.isa())},
                       {"peak_mib", peak_memory_mib()}});
}

}  // namespace isomer
