#pragma once
// The metrics of a run as TensorBoard shows them: RUN/tensorboard/, one file that says what metrics.jsonl says.
//
//   Tensorboard board(folder);     // with all lines that are there: a resumed run has no step twice, and none is missing
//   board.add(line);               // of metrics.jsonl
#include <memory>
#include <string>

#include "isomer/io/event_file.h"
#include "isomer/train/run_folder.h"

namespace isomer {

class Tensorboard {
 public:
  /// Begins a new file; those of earlier parts of the run are removed. Throws Error when it cannot be written.
  explicit Tensorboard(const RunFolder& folder);
  void add(const MetricsLine& line);

  [[nodiscard]] static std::string path_in(const RunFolder& folder) { return folder.path() + "/tensorboard"; }

 private:
  double start_;  // of the run, in seconds since 1970, as if it had never been interrupted
  std::unique_ptr<EventFile> file_;
};

}  // namespace isomer
