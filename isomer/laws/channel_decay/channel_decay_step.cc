// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/channel_decay/channel_decay_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::channel_decay_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const ChannelDecayOutputs<T>& out, Workspace& workspace) {
  const Index P = padded(plan.K), L = plan.sequences[n].length;
  const HeadColumns at{n, h, plan.all_columns()};
  const StatePlace<T> state = place_state(plan.in.initial_state, out.final_state, n, h, plan.K, plan.V, L > 0, workspace);
  if (state.fetched) fetch_state(plan.in.initial_state, at, plan.K, state.fetched);
  const StepState<T> s{
      .from = state.from, .to = state.to, .q = workspace.take<T>(P), .k = workspace.take<T>(P), .decay = workspace.take<T>(P)};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule(h), s, plan.rows(out.o, n, h, 0));
  if (state.kept) store_state(state.kept, plan.K, out.final_state, at);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context) {
  with_law_isa<T>(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const ChannelDecayOutputs<float>&, Context&);
template void step(const Plan<double>&, const ChannelDecayOutputs<double>&, Context&);

}  // namespace isomer::channel_decay_detail
