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
  Context& context;

  template <Isa I>
  void keep(const T* state, Index n, Index h, Index c, Columns columns) const {
    if (edges) Kernels<T, I>::keep(plan.K, columns, state, plan.state(edges, n, h, c));
  }

  // Chunk c of a head, some columns of whose state are in sv.
  template <Isa I>
  void chunk(Index n, Index h, Index c, Columns columns, const Scratch<T>& s, T* sv) const {
    using Kernel = Kernels<T, I>;
    keep<I>(sv, n, h, c, columns);
    const Tokens<T> x = only(columns, plan.tokens(n, h, c));
    Ahead<T> ahead;
    const Rows<T> to = only(columns, plan.rows(o, n, h, c));
    ahead.add(to.data, to.stride, x.V, x.C);
    plan.add_gates_and_keys(ahead, n, h, c + 1);
    if (edges) ahead.add(plan.state(edges, n, h, c + 1) + columns.begin * plan.K, plan.K, plan.K, x.V);
    if (plan.walks && o.present()) {
      plan.add_queries_and_values(ahead, n, h, c + 1, columns);
      return Kernel::walk(x, plan.rule(h), s, sv, to, ahead);
    }
    const Reach reach = o.present() ? Reach::block : Reach::chunk;
    Kernel::load(x, reach, s, sv);
    if (o.present()) Kernel::read(x, plan.rule(h), s, sv, to, ahead);
    ahead = {};
    plan.add_queries_and_values(ahead, n, h, c + 1, columns);
    if (c + 1 < plan.chunks(n) || edges || final_state.present()) Kernel::write(x, reach, s, sv, ahead);
  }

  // Some columns of heads h … h + count − 1, chunk after chunk.
  template <Isa I>
  void group(Index n, Index h, Index count, Columns columns, Workspace& workspace) const {
    const Scratch<T> s = plan.take_scratch(workspace);
    T* sv[kNeighbours];
    for (Index g = 0; g < count; ++g) {
      sv[g] = plan.take_state_and_values(workspace);
      plan.fetch(plan.in.initial_state, n, h + g, columns, sv[g]);
    }
    for (Index c = 0; c < plan.chunks(n); ++c)
      for (Index g = 0; g < count; ++g) chunk<I>(n, h + g, c, columns, s, sv[g]);
    for (Index g = 0; g < count; ++g) {
      keep<I>(sv[g], n, h + g, plan.chunks(n), columns);
      plan.store(sv[g], columns, final_state, n, h + g);
    }
  }

  void run() const {
    with_isa(context.isa(), [&]<Isa I>() {
      plan.each_slice(context, plan.V, [&](Index n, Index h, Index count, Columns columns, Workspace& workspace) {
        group<I>(n, h, count, columns, workspace);
      });
    });
  }
};

}  // namespace

template <class T>
void forward(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context) {
  T* edges = out.tape ? out.tape->record(plan.C, plan.all_edges() * plan.state_size()) : nullptr;
  Forward<T>{plan, out.o, out.final_state, edges, context}.run();
}

template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context) {
  Forward<T>{plan, {}, {}, edges, context}.run();
}

template void forward(const Plan<float>&, const ChannelDecayOutputs<float>&, Context&);
template void forward(const Plan<double>&, const ChannelDecayOutputs<double>&, Context&);
template void forward_edges(const Plan<float>&, float*, Context&);
template void forward_edges(const Plan<double>&, double*, Context&);

}  // namespace isomer::channel_decay_detail
