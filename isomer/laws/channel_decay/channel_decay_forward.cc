// The order of the chunks, forward. Either neighbouring heads run their chunks one after the other with the states in cache, or
// (few heads) all chunks run side by side: what each adds, a pass over the edges, then the outputs.
#include <algorithm>
#include <cstring>

#include "isomer/laws/channel_decay/channel_decay_plan.h"

namespace isomer::channel_decay_detail {

namespace {

// Elements of a state that one task of the pass over edges moves: 4 KiB of floats.
constexpr Index kSlice = 1024;

template <class T>
struct Forward {
  const Plan<T>& plan;
  View<T, 4> o;  // absent: only edges are wanted
  View<T, 4> final_state;
  T* edges;  // where to keep every state; null: nowhere
  Context& context;

  void copy_state(const T* from, T* to) const { std::memcpy(to, from, std::size_t(plan.K * plan.V) * sizeof(T)); }

  // Chunk c of a head whose state is in sv.
  template <Isa I>
  void chunk(Index n, Index h, Index c, const Scratch<T>& s, T* sv) const {
    using Kernel = Kernels<T, I>;
    if (edges) copy_state(sv, plan.state(edges, n, h, c));
    const Tokens<T> x = plan.tokens(n, h, c);
    Ahead<T> ahead;
    const Rows<T> to = plan.rows(o, n, h, c);
    ahead.add(to.data, to.stride, plan.V, x.C);
    plan.add_gates_and_keys(ahead, n, h, c + 1);
    if (plan.walks && o.present()) {
      plan.add_queries_and_values(ahead, n, h, c + 1);
      return Kernel::walk(x, plan.rule(h), s, sv, to, ahead);
    }
    const Reach reach = o.present() ? Reach::block : Reach::chunk;
    Kernel::load(x, reach, s, sv);
    if (o.present()) Kernel::read(x, plan.rule(h), s, sv, to, ahead);
    ahead = {};
    plan.add_queries_and_values(ahead, n, h, c + 1);
    if (c + 1 < plan.chunks(n) || edges || final_state.present()) Kernel::write(x, reach, s, sv, nullptr, ahead);
  }

  // Heads h … h + count − 1, chunk after chunk.
  template <Isa I>
  void group(Index n, Index h, Index count, Workspace& workspace) const {
    const Scratch<T> s = plan.take_scratch(workspace);
    T* sv[kNeighbours];
    for (Index g = 0; g < count; ++g) {
      sv[g] = plan.take_state_and_values(workspace);
      plan.fetch(plan.in.initial_state, n, h + g, sv[g]);
    }
    for (Index c = 0; c < plan.chunks(n); ++c)
      for (Index g = 0; g < count; ++g) chunk<I>(n, h + g, c, s, sv[g]);
    for (Index g = 0; g < count; ++g) {
      if (edges) copy_state(sv[g], plan.state(edges, n, h + g, plan.chunks(n)));
      plan.store(sv[g], final_state, n, h + g);
    }
  }

  // All chunks of all heads side by side.
  template <Isa I>
  void split() const {
    const Index P = padded(plan.K);
    Workspace& own = context.workspace();
    T* carries = own.take<T>(plan.all_edges() * P);
    for (Index i = 0; i < plan.heads(); ++i) {
      const Index n = i / plan.H, h = i % plan.H;
      plan.fetch(plan.in.initial_state, n, h, plan.state(edges, n, h, 0));
    }
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const Scratch<T> s = plan.take_scratch(workspace);
      const Tokens<T> x = plan.tokens(n, h, c);
      T* sv = plan.take_state_and_values(workspace);
      Kernels<T, I>::load(x, Reach::chunk, s, sv);
      Kernels<T, I>::write(x, Reach::chunk, s, sv, plan.state(edges, n, h, c + 1), {});
      std::copy_n(s.carry, P, carries + plan.edge_index(n, h, c) * P);
    });
    pass<I>(carries);
    if (o.present()) read_all<I>();
    for (Index i = 0; i < plan.heads(); ++i) {
      const Index n = i / plan.H, h = i % plan.H;
      plan.store(plan.state(edges, n, h, plan.chunks(n)), final_state, n, h);
    }
  }

  template <Isa I>
  void pass(const T* carries) const {
    const Index rows = std::max<Index>(1, kSlice / plan.V), slices = ceil_div(plan.K, rows);
    context.parallel(plan.heads() * slices, [&](Index i, Workspace&) {
      const Index n = i / slices / plan.H, h = i / slices % plan.H, begin = i % slices * rows;
      const Index count = std::min(rows, plan.K - begin), at = begin * plan.V;
      for (Index c = 0; c < plan.chunks(n); ++c)
        Kernels<T, I>::advance(carries + plan.edge_index(n, h, c) * padded(plan.K) + begin, plan.state(edges, n, h, c) + at,
                               plan.state(edges, n, h, c + 1) + at, count, plan.V);
    });
  }

  template <Isa I>
  void read_all() const {
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const Scratch<T> s = plan.take_scratch(workspace);
      const Tokens<T> x = plan.tokens(n, h, c);
      T* sv = plan.take_state_and_values(workspace);
      copy_state(plan.state(edges, n, h, c), sv);
      Kernels<T, I>::load(x, Reach::block, s, sv);
      Kernels<T, I>::read(x, plan.rule(h), s, sv, plan.rows(o, n, h, c), {});
    });
  }

  void run() const {
    with_isa(context.isa(), [&]<Isa I>() {
      if (plan.split) return split<I>();
      plan.each_group(context, [&](Index n, Index h, Index count, Workspace& workspace) { group<I>(n, h, count, workspace); });
    });
  }
};

}  // namespace

template <class T>
void forward(const Plan<T>& plan, const ChannelDecayOutputs<T>& out, Context& context) {
  const Index size = plan.all_edges() * plan.state_size();
  T* edges = out.tape ? out.tape->record(plan.C, size) : nullptr;
  if (!edges && plan.split) edges = context.workspace().template take<T>(size);
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
