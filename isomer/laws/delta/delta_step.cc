// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/delta/delta_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::delta_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const DeltaOutputs<T>& out, Workspace& workspace) {
  const Index K = plan.K, V = plan.V, L = plan.sequences[n].length;
  const HeadColumns at{n, h, plan.all_columns()};
  const StatePlace<T> state = place_state(plan.in.initial_state, out.final_state, n, h, K, V, L > 0, workspace);
  if (state.fetched) fetch_state(plan.in.initial_state, at, K, state.fetched);
  const auto take = [&] { return workspace.take<T>(K + kPad); };
  const StepState<T> s{.from = state.from, .to = state.to, .q = take(), .x = take(), .keep = take(), .k = take(), .b = take()};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule, s, plan.rows(out.o, n, h, 0));
  if (state.kept) store_state(state.kept, K, out.final_state, at);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const DeltaOutputs<float>&, Context&);
template void step(const Plan<double>&, const DeltaOutputs<double>&, Context&);

}  // namespace isomer::delta_detail
