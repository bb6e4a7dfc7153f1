// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/delta/delta_plan.h"

namespace isomer::delta_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const DeltaOutputs<T>& out, Workspace& workspace) {
  const Index K = plan.K, V = plan.V, L = plan.sequences[n].length;
  const View<const T, 4>& initial = plan.in.initial_state;
  const View<T, 4>& last = out.final_state;
  const bool reads = L > 0 && in_place(initial), writes = L > 0 && in_place(last);
  T* own = reads && writes ? nullptr : workspace.take<T>(K * V);
  if (!reads) plan.fetch(initial, n, h, plan.all_columns(), own);
  const auto take = [&] { return workspace.take<T>(K + kPad); };
  const StepState<T> s{.from = reads ? Rows<const T>{initial.at(n, h), initial.stride[2]} : Rows<const T>{own, V},
                       .to = writes ? Rows<T>{last.at(n, h), last.stride[2]} : Rows<T>{own, V},
                       .q = take(),
                       .x = take(),
                       .keep = take(),
                       .k = take(),
                       .b = take()};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule, s, plan.rows(out.o, n, h, 0));
  if (!writes) plan.store(own, plan.all_columns(), last, n, h);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context) {
  with_isa(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const DeltaOutputs<float>&, Context&);
template void step(const Plan<double>&, const DeltaOutputs<double>&, Context&);

}  // namespace isomer::delta_detail
