#pragma once
// isomer bench --worker: one JSON request a line in, one JSON answer a line out, so that a driver can time Isomer and its peers
// in turns.
//   {"op": "time", "case": {"subject", "variant", "direction", "B", "T", "H", "K", "V", "S", "window", "chunk",
//                             "threads"}, "repeat": n}
//                                                                        -> {"seconds": […], "flops": x, "form": "chunk"}
//   {"op": "peak", "threads": n}                                         -> {"gflops": x}
//   {"op": "read", "threads": n, "bytes": n}                             -> {"gb_per_s": x}, of as many bytes again and again
//   {"op": "train" or "generate", …}                                     see worker_models.h
//   {"op": "model", …}                                                   see worker_folders.h
// What it cannot do is answered with {"skip": reason}.
#include <memory>
#include <string>

namespace isomer {

class BenchWorker {
 public:
  BenchWorker();
  ~BenchWorker();
  /// Without the end of the line; throws nothing.
  [[nodiscard]] std::string answer(const std::string& request);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace isomer
