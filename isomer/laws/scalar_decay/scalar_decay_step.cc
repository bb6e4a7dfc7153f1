// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::scalar_decay_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const ScalarDecayOutputs<T>& out, Workspace& workspace) {
  const Index K = plan.K, V = plan.V, L = plan.sequences[n].length;
  const HeadColumns at{n, h, plan.all_columns()};
  // `subtract` keeps its sums about a mean when there is more than one token: that takes a pass of its own at both ends.
  const bool shifted = plan.rule.centred && L > 1;
  const StatePlace<T> state =
      place_state(plan.in.initial.state, out.final_states.state, n, h, K, V, !shifted && L > 0, workspace);
  T* p = workspace.take<T>(2 * (K + V) + 1);
  Edge<T> edge{state.fetched, p, p + K, p + K + V, p + 2 * K + V, p + 2 * K + 2 * V};
  if (shifted)
    plan.enter(at, edge);
  else
    plan.fetch_states(at, edge);
  const StepState<T> s{.from = state.from,
                       .to = state.to,
                       .q = workspace.take<T>(K),
                       .k = workspace.take<T>(K),
                       .v = workspace.take<T>(V),
                       .mean = workspace.take<T>(V)};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule, edge, s, plan.rows(out.o, n, h, 0));
  ScalarDecayStates<T> to = out.final_states;
  if (!state.kept) to.state = {};
  edge.state = state.kept;
  if (shifted)
    plan.leave(edge, at, to);
  else
    plan.store_states(edge, at, to);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const ScalarDecayOutputs<T>& out, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const ScalarDecayOutputs<float>&, Context&);
template void step(const Plan<double>&, const ScalarDecayOutputs<double>&, Context&);

}  // namespace isomer::scalar_decay_detail
