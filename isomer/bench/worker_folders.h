#pragma once
// Pre-trained models for isomer bench --worker: loading, a prompt at once, tokens one at a time.
//   {"op": "model", "case": {"model": FOLDER, "weights", "threads"}, "prompt": [tokens], "tokens": n, "repeat": n}
//       -> {"load": seconds of the first request, "first": seconds from its start to the first token, "prefill": [seconds of each
//           repeat], "decode": [seconds of each token of all repeats], "next": [tokens of the last], "logits": [of the prompt's
//           last token, some], "bytes" (that a token reads), "copied_bytes" (of weights that do not stay in their file), "isa",
//           "peak_mib"} in one line
// "weights" is float32 or bf16; "compute" in the case, which may be left out, is bf16 where weights in bf16 are multiplied with
// rounded numbers. A language model says n tokens after its prompt, the likeliest each; any other computes its
// outputs of all tokens, and "decode" is empty. A model is kept until another case is asked for.
#include <memory>
#include <string>

#include "isomer/base/context.h"
#include "isomer/io/json.h"

namespace isomer {

class FolderWorker {
 public:
  FolderWorker();
  ~FolderWorker();
  /// Throws Error as load_model() does.
  [[nodiscard]] Json run(const Json& request, Context& context);

 private:
  struct Work;
  std::string key_;  // of the case that `work_` was made for
  std::unique_ptr<Work> work_;
};

}  // namespace isomer
