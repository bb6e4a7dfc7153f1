// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include <algorithm>

#include "isomer/laws/delta/delta_plan.h"

namespace isomer::delta_detail {

namespace {

// Elements of state that a task moves at least: below 128 KiB waking another thread costs more than it saves.
constexpr Index kTask = 32768;

template <class T>
bool dense(const View<T, 4>& state) {
  return state.present() && (state.shape[3] == 1 || state.stride[3] == 1);
}

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const DeltaOutputs<T>& out, Workspace& workspace) {
  const Workspace::Scope scope(workspace);
  const Index K = plan.K, V = plan.V, L = plan.sequences[n].length;
  const View<const T, 4>& initial = plan.in.initial_state;
  const View<T, 4>& last = out.final_state;
  const bool reads = L > 0 && dense(initial), writes = L > 0 && dense(last);
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
  const Index each = std::max<Index>(1, kTask / (plan.K * plan.V * std::max<Index>(1, plan.in.q.shape[1])));
  with_isa(context.isa(), [&]<Isa I>() {
    context.parallel(ceil_div(plan.heads(), each), [&](Index task, Workspace& workspace) {
      for (Index i = task * each; i < std::min(plan.heads(), (task + 1) * each); ++i)
        step_head<T, I>(plan, i / plan.H, i % plan.H, out, workspace);
    });
  });
}

template void step(const Plan<float>&, const DeltaOutputs<float>&, Context&);
template void step(const Plan<double>&, const DeltaOutputs<double>&, Context&);

}  // namespace isomer::delta_detail
