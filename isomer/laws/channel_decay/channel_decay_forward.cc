// The order of the chunks, forward: a task carries the states of some neighbouring heads, or some columns of one, from chunk to
// chunk.
#include "isomer/laws/channel_decay/channel_decay_plan.h"

namespace isomer::channel_decay_detail {

namespace {

template <class T>
struct Forward {
  const Plan<T>& plan;
  View<T, 4> o;  // absent: only edges are wanted
  View<T, 4> final_state;
  T* edges;  // where to keep every state; null: nowhere

  template <Isa I>
  void keep(const T* state, const HeadColumns& at, Index c) const {
    if (edges) Kernels<T, I>::keep(plan.K, at.columns, state, plan.state(edges, at.n, at.h, c));
  }

  [[nodiscard]] Scratch<T> take_scratch(Workspace& workspace) const { return plan.take_scratch(workspace); }
  [[nodiscard]] T* enter(const HeadColumns& at, const Scratch<T>&, Workspace& workspace) const {
    T* sv = plan.take_state_and_values(workspace);
    fetch_state(plan.in.initial_state, at, plan.K, sv);
    return sv;
  }
  // Chunk c of a head, some columns of whose state are in sv.
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const Scratch<T>& s, T* sv) const {
    using Kernel = Kernels<T, I>;
    const auto& [n, h, columns] = at;
    keep<I>(sv, at, c);
    const Tokens<T> x = only(columns, plan.tokens(n, h, c));
    PrefetchList<T> ahead;
    const Rows<T> to = only(columns, plan.rows(o, n, h, c));
    ahead.add(to.data, to.stride, x.V, x.C);
    plan.add_prefetch(ahead, n, h, c + 1, columns);
    if (edges) ahead.add(plan.state(edges, n, h, c + 1) + columns.begin * plan.K, plan.K, plan.K, x.V);
    if (plan.walks && o.present()) return Kernel::walk(x, plan.rule(h), s, sv, to, ahead);
    const Reach reach = o.present() ? Reach::block : Reach::chunk;
    Kernel::load(x, reach, s, sv);
    if (o.present()) Kernel::read(x, plan.rule(h), s, sv, to, ahead);
    if (c + 1 < plan.chunks(n) || edges || final_state.present())
      Kernel::write(x, reach, s, sv, o.present() ? PrefetchList<T>{} : ahead);
  }
  template <Isa I>
  void leave(const HeadColumns& at, const Scratch<T>&, T* sv) const {
    keep<I>(sv, at, plan.chunks(at.n));
    store_state(sv, plan.K, final_state, at);
  }
};

}  // namespace

template <class T>
void forward(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context) {
  T* edges = out.tape ? out.tape->record(plan.C, plan.all_edges() * plan.edge_size()) : nullptr;
  carry_slices<Order::forward>(Forward<T>{plan, out.o, out.final_state, edges}, context);
}

template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context) {
  carry_slices<Order::forward>(Forward<T>{plan, {}, {}, edges}, context);
}

template void forward(const Plan<float>&, const ChannelDecayOutputs<float>&, Context&);
template void forward(const Plan<double>&, const ChannelDecayOutputs<double>&, Context&);
template void forward_edges(const Plan<float>&, float*, Context&);
template void forward_edges(const Plan<double>&, double*, Context&);

}  // namespace isomer::channel_decay_detail
