// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"

namespace isomer::scalar_decay_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const ScalarDecayOutputs<T>& out, Workspace& workspace) {
  const Index K = plan.K, V = plan.V, L = plan.sequences[n].length;
  const auto& initial = plan.in.initial.state;
  const auto& last = out.final_states.state;
  // `subtract` keeps its sums about a mean when there is more than one token: that takes a pass of its own at both ends.
  const bool shifted = plan.rule.centred && L > 1;
  const bool direct = !shifted && L > 0;
  const bool read_in_place = direct && in_place(initial), write_in_place = direct && in_place(last);
  T* sums = read_in_place && write_in_place ? nullptr : workspace.take<T>(K * V);
  T* p = workspace.take<T>(2 * (K + V) + 1);
  Edge<T> edge{nullptr, p, p + K, p + K + V, p + 2 * K + V, p + 2 * K + 2 * V};
  edge.state = read_in_place ? nullptr : sums;
  if (shifted)
    plan.enter(n, h, edge, plan.all_columns());
  else
    plan.fetch_states(n, h, edge, plan.all_columns());
  const StepState<T> s{.from = read_in_place ? Rows<const T>{initial.at(n, h), initial.stride[2]} : Rows<const T>{sums, V},
                       .to = write_in_place ? Rows<T>{last.at(n, h), last.stride[2]} : Rows<T>{sums, V},
                       .q = workspace.take<T>(K),
                       .k = workspace.take<T>(K),
                       .v = workspace.take<T>(V),
                       .mean = workspace.take<T>(V)};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule, edge, s, plan.rows(out.o, n, h, 0));
  ScalarDecayStates<T> to = out.final_states;
  if (write_in_place) to.state = {};
  edge.state = sums;
  if (shifted)
    plan.leave(n, h, edge, plan.all_columns(), to);
  else
    plan.store_states(n, h, edge, plan.all_columns(), to);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const ScalarDecayOutputs<T>& out, Context& context) {
  with_isa(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const ScalarDecayOutputs<float>&, Context&);
template void step(const Plan<double>&, const ScalarDecayOutputs<double>&, Context&);

}  // namespace isomer::scalar_decay_detail
