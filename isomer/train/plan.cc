#include "isomer/train/plan.h"

#include "isomer/base/format.h"
#include "isomer/base/machine.h"

namespace isomer {

TrainPlan plan_training(Session& session, const MemoryEstimate& memory) {
  const TrainRecipe& t = session.recipe().train;
  (void)session.step();
  const StepReport second = session.step();
  return {.parameters = session.parameters().trained_size(),
          .tokens_per_step = t.batch * session.task().shape().length,
          .steps = t.steps,
          .memory = memory,
          .seconds_per_step = second.seconds,
          .tokens_per_second = double(second.tokens) / second.seconds,
          .seconds = second.seconds * double(t.steps),
          .peak_bytes = double(peak_memory_mib()) * (1 << 20)};
}

Json to_json(const TrainPlan& plan) {
  return Json::object({{"parameters", plan.parameters},
                       {"tokens_per_step", plan.tokens_per_step},
                       {"steps", plan.steps},
                       {"memory_bytes", plan.memory.total()},
                       {"seconds_per_step", plan.seconds_per_step},
                       {"tokens_per_s", plan.tokens_per_second},
                       {"seconds", plan.seconds},
                       {"peak_bytes", plan.peak_bytes}});
}

std::string plan_text(const TrainPlan& plan) {
  const MemoryEstimate& memory = plan.memory;
  return "parameters  " + std::to_string(plan.parameters) + "\ntokens      " + std::to_string(plan.tokens_per_step) +
         " a step, " + text_of(double(plan.tokens_per_step) * double(plan.steps)) + " in " + std::to_string(plan.steps) +
         " steps\na step      " + formatted("%.1f", plan.seconds_per_step * 1e3) + " ms, " +
         formatted("%.0f", plan.tokens_per_second) + " tokens/s\nthe run     about " + clock_of(plan.seconds) +
         " without evaluations\nmemory      " + bytes_text(memory.total()) + " by shapes (parameters " +
         bytes_text(memory.parameters) + ", optimiser " + bytes_text(memory.optimiser) + ", activations " +
         bytes_text(memory.activations) + "); " + bytes_text(plan.peak_bytes) + " at most so far\n";
}

}  // namespace isomer
