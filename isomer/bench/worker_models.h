#pragma once
// Whole models for isomer bench --worker: steps of training, and tokens one at a time. Weights are random.
//   {"op": "train", "case": {"preset", "layers", "width", "vocabulary", "B", "T", "threads"}, "repeat": n, "save": "x"}
//       -> {"seconds": [of each step], "losses": […], "parameters", "law_flops_per_token" (of a step), "isa", "peak_mib"}
//   {"op": "generate", "case": {…, "prompt", "weights" instead of B and T}, "repeat": n, "save": "x"}
//       -> {"seconds": [of each token], "tokens": […], "bytes" (that a token reads), "state_bytes", "isa", "peak_mib"}
// "weights" is float32 or bf16. "save", which may be left out, is where weights and tokens are written before the first step, so
// that a peer can start from the same. A model is kept until another case is asked for: steps go on from one request to the next,
// and tokens start again after the prompt.
#include <memory>
#include <string>

#include "isomer/bench/model.h"
#include "isomer/io/json.h"

namespace isomer {

/// What a case keeps its matrices in. Throws Error for other types.
[[nodiscard]] Type storage_in(const Json& from);

class ModelWorker {
 public:
  ModelWorker();
  ~ModelWorker();
  /// Throw Error for a case that no model can be made of.
  [[nodiscard]] Json train(const Json& request, Context& context);
  [[nodiscard]] Json generate(const Json& request, Context& context);

 private:
  struct Training;
  struct Generation;
  template <class Work>
  [[nodiscard]] Work& prepare(const Json& request, Context& context);

  std::string key_;  // of the request that `kept_` was made for
  std::unique_ptr<BenchModel> kept_;
};

}  // namespace isomer
