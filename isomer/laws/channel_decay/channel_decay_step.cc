// The step form: heads in parallel, each one token after the other with its state in place where its rows are dense.
#include "isomer/laws/channel_decay/channel_decay_plan.h"

namespace isomer::channel_decay_detail {

namespace {

template <class T, Isa I>
void step_head(const Plan<T>& plan, Index n, Index h, const ChannelDecayOutputs<T>& out, Workspace& workspace) {
  const Index P = padded(plan.K), L = plan.sequences[n].length;
  const auto& initial = plan.in.initial_state;
  const auto& last = out.final_state;
  const bool read_in_place = L > 0 && in_place(initial), write_in_place = L > 0 && in_place(last);
  T* state = read_in_place && write_in_place ? nullptr : workspace.take<T>(plan.state_size());
  if (!read_in_place) plan.fetch(initial, n, h, state);
  const StepState<T> s{.from = read_in_place ? Rows<const T>{initial.at(n, h), initial.stride[2]} : Rows<const T>{state, plan.V},
                       .to = write_in_place ? Rows<T>{last.at(n, h), last.stride[2]} : Rows<T>{state, plan.V},
                       .q = workspace.take<T>(P),
                       .k = workspace.take<T>(P),
                       .decay = workspace.take<T>(P)};
  Tokens<T> x = plan.tokens(n, h, 0);
  x.C = L;
  Kernels<T, I>::step(x, plan.rule(h), s, plan.rows(out.o, n, h, 0));
  if (!write_in_place) plan.store(state, last, n, h);
}

}  // namespace

template <class T>
void step(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context) {
  with_isa(context.isa(), [&]<Isa I>() {
    plan.each_stepped(context, plan.K * plan.V,
                      [&](Index n, Index h, Workspace& workspace) { step_head<T, I>(plan, n, h, out, workspace); });
  });
}

template void step(const Plan<float>&, const ChannelDecayOutputs<float>&, Context&);
template void step(const Plan<double>&, const ChannelDecayOutputs<double>&, Context&);

}  // namespace isomer::channel_decay_detail
