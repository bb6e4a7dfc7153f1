#pragma once
// The training loop: steps, evaluations, metrics and checkpoints of one run, and going on after any kind of stop.
//
//   Session session(recipe, context);
//   RunFolder folder = RunFolder::create("runs/a", to_toml(recipe));
//   const TrainOutcome outcome = train(session, folder, {}, stop);      // stop: set it to end after the current step
#include <atomic>
#include <functional>
#include <optional>
#include <string_view>

#include "isomer/train/run_folder.h"
#include "isomer/train/run_summary.h"
#include "isomer/train/session.h"

namespace isomer {

/// Called by the loop; all may be empty.
struct TrainEvents {
  std::function<void(const StepReport&, double tokens_per_second)> step = {};
  std::function<void(Index step, const EvalReport&)> evaluated = {};
  std::function<void(const MetricsLine&)> recorded = {};  // once it is written
  std::function<void(Index step)> saved = {};
};

struct TrainOutcome {
  enum class End { finished, reached_goal, stopped_improving, stopped };
  End end = End::finished;
  Index steps = 0;
  double seconds = 0;       // of all parts of the run
  double data_seconds = 0;  // of this part, making batches
  std::optional<EvalReport> last_eval = {};
};

/// From where the session stands to the end of its recipe; a run that has learned enough (stopping.h) is at its end. Saves at the
/// recipe's intervals, at the end and when stopped. Throws NotFinite, and Error when something cannot be written: checkpoints
/// saved before are intact, and the last line of metrics says {"step": …, "failed": "…"}.
TrainOutcome train(Session& session, const RunFolder& folder, const TrainEvents& events, const std::atomic<bool>& stop);

/// A new folder with the session as a checkpoint: `resume` goes on from there.
RunFolder start_run(const std::string& path, Session& session);

struct ResumeOptions {
  bool changed_data = false;  // go on though the files of the task are not as they were
  bool fall_back = false;     // from the last checkpoint that can be read; damaged ones are set aside once one is found
  std::function<void(const std::string& problem)> set_aside = {};
};

/// Puts the session where the folder's last checkpoint stood and drops metrics after it. Without a checkpoint: from the start.
/// Throws DamagedCheckpoint or NotFinite for one that cannot be read, OtherModel for one of another recipe, and Error for data
/// that has changed and for a run that has done more steps than its recipe says. Then the folder stays as it was.
void resume(Session& session, const RunFolder& folder, const ResumeOptions& options = {});

/// How the run stands.
[[nodiscard]] RunState state_of(const RunFolder& folder);

}  // namespace isomer
