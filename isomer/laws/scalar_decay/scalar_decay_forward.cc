// The order of the chunks, forward: a task carries the states of some neighbouring heads, or some columns of one, from chunk to
// chunk. Few heads that do not walk (`subtract`, not causal) run all chunks side by side: what each adds, a pass over the edges,
// then the outputs.
#include <algorithm>

#include "isomer/laws/scalar_decay/scalar_decay_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::scalar_decay_detail {

namespace {

// Elements of an edge that one task of the pass over edges moves: 4 KiB of floats.
constexpr Index kSlice = 1024;

template <class T>
struct Forward {
  const Plan<T>& plan;
  View<T, 4> o;  // absent: only edges are wanted
  ScalarDecayStates<T> final_states;
  T* edges;  // where to keep every edge; null: nowhere
  Context& context;

  [[nodiscard]] bool wants_final() const {
    return final_states.state.present() || final_states.norm.present() || final_states.max.present() ||
           final_states.value_sum.present();
  }
  [[nodiscard]] Rows<T> output(Index n, Index h, Index c) const { return plan.rows(o, n, h, c); }

  [[nodiscard]] Scratch<T> take_scratch(Workspace& workspace) const { return plan.take_scratch(workspace); }
  // The task's scratch with a state of the head's own.
  [[nodiscard]] Scratch<T> enter(const HeadColumns& at, const Scratch<T>& s, Workspace& workspace) const {
    const Scratch<T> own = plan.beside(s, workspace);
    plan.enter(at, plan.scratch_edge(own));
    return own;
  }
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const Scratch<T>&, const Scratch<T>& s) const {
    using Kernel = Kernels<T, I>;
    const auto& [n, h, columns] = at;
    const Edge<T> edge = plan.scratch_edge(s);
    const bool causal = plan.rule.causal;
    if (edges && causal) Kernel::keep(plan.K, plan.V, columns, edge, plan.edge(edges, n, h, c));
    const Tokens<T> x = only(columns, plan.tokens(n, h, c));
    PrefetchList<T> ahead;
    const Rows<T> to = only(columns, output(n, h, c));
    ahead.add(to.data, to.stride, x.V, x.C);
    plan.add_prefetch(ahead, n, h, c + 1, columns);
    if (edges && causal) ahead.add(plan.edge(edges, n, h, c + 1).state + columns.begin * plan.K, plan.K, plan.K, x.V);
    if (plan.walks && o.present()) return Kernel::walk(x, plan.rule, edge, s, to, ahead);
    Kernel::load(x, plan.rule, edge, s);
    if (causal && o.present()) Kernel::read(x, plan.rule, edge, s, to, ahead);
    if (c + 1 < plan.chunks(n) || !causal || edges || wants_final()) Kernel::write(x, plan.rule, edge, edge, s, Write::add);
  }
  template <Isa I>
  void leave(const HeadColumns& at, const Scratch<T>&, const Scratch<T>& s) const {
    const Edge<T> edge = plan.scratch_edge(s);
    const Index chunks = plan.chunks(at.n);
    if (edges) Kernels<T, I>::keep(plan.K, plan.V, at.columns, edge, plan.edge(edges, at.n, at.h, chunks));
    for (Index c = 0; c < chunks && !plan.rule.causal && o.present(); ++c) read_global<I>(at.n, at.h, c, edge, s);
    if (wants_final()) plan.leave(edge, at, final_states);
  }

  template <Isa I>
  void read_global(Index n, Index h, Index c, const Edge<T>& edge, const Scratch<T>& s) const {
    Tokens<T> x = plan.tokens(n, h, c);
    x.count = double(plan.sequences[n].length);
    x.first = x.empty = false;
    Kernels<T, I>::read(x, plan.rule, edge, s, output(n, h, c), {});
  }

  // All chunks of all heads side by side; nothing decays here.
  template <Isa I>
  void split() const {
    using Kernel = Kernels<T, I>;
    context.parallel(plan.heads(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const HeadColumns at = plan.head(i);
      const Index n = at.n, h = at.h;
      const Scratch<T> s = plan.take_scratch(workspace);
      plan.enter(at, plan.edge(edges, n, h, 0));
      for (Index c = 0; c < plan.chunks(n); ++c)
        Kernel::trace(plan.tokens(n, h, c), plan.rule, plan.edge(edges, n, h, c), plan.edge(edges, n, h, c + 1), s);
    });
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const Scratch<T> s = plan.take_scratch(workspace);
      const Edge<T> before = plan.edge(edges, n, h, c);
      const Tokens<T> x = plan.tokens(n, h, c);
      Kernel::load(x, plan.rule, before, s);
      Kernel::write(x, plan.rule, before, plan.edge(edges, n, h, c + 1), s, Write::set);
    });
    pass<I>();
    if (o.present()) read_all<I>();
    for (Index i = 0; i < plan.heads() && wants_final(); ++i) finish(plan.head(i), context.workspace());
  }

  template <Isa I>
  void pass() const {
    const Index sums = edge_sums(plan.K, plan.V), slices = ceil_div(sums, kSlice);
    context.parallel(plan.heads() * slices, [&](Index i, Workspace&) {
      const Index n = i / slices / plan.H, h = i / slices % plan.H, begin = i % slices * kSlice;
      const Index count = std::min(kSlice, sums - begin);
      for (Index c = 0; c < plan.chunks(n); ++c)
        Kernels<T, I>::advance(T(1), plan.edge(edges, n, h, c).state + begin, plan.edge(edges, n, h, c + 1).state + begin, count);
    });
  }

  template <Isa I>
  void read_all() const {
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const Scratch<T> s = plan.take_scratch(workspace);
      const Edge<T> edge = plan.scratch_edge(s);
      plan.copy_edge(plan.edge(edges, n, h, plan.rule.causal ? c : plan.chunks(n)), edge, plan.all_columns());
      if (!plan.rule.causal) return read_global<I>(n, h, c, edge, s);
      const Tokens<T> x = plan.tokens(n, h, c);
      Kernels<T, I>::load(x, plan.rule, edge, s);
      Kernels<T, I>::read(x, plan.rule, edge, s, output(n, h, c), {});
    });
  }

  // leave() moves sums in place: not in an edge that a tape keeps.
  void finish(const HeadColumns& at, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const Edge<T> edge = plan.take_edge(workspace);
    plan.copy_edge(plan.edge(edges, at.n, at.h, plan.chunks(at.n)), edge, at.columns);
    plan.leave(edge, at, final_states);
  }

  void run() const {
    if (plan.walks) return carry_slices<Order::forward>(*this, context);
    if (!plan.split) return carry_groups<Order::forward>(*this, context);
    with_law_isa<T>(context.isa(), [&]<Isa I>() { split<I>(); });
  }
};

}  // namespace

template <class T>
void forward(const Plan<T>& plan, const ScalarDecayOutputs<T>& out, Context& context) {
  const Index size = plan.all_edges() * plan.edge_size();
  T* edges = out.tape ? out.tape->record(plan.C, size) : nullptr;
  if (!edges && plan.split && !plan.walks) edges = context.workspace().template take<T>(size);
  Forward<T>{plan, out.o, out.final_states, edges, context}.run();
}

template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context) {
  Forward<T>{plan, {}, {}, edges, context}.run();
}

template void forward(const Plan<float>&, const ScalarDecayOutputs<float>&, Context&);
template void forward(const Plan<double>&, const ScalarDecayOutputs<double>&, Context&);
template void forward_edges(const Plan<float>&, float*, Context&);
template void forward_edges(const Plan<double>&, double*, Context&);

}  // namespace isomer::scalar_decay_detail
