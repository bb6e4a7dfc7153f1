// The order of the chunks, forward. Either tasks carry the states of some neighbouring heads from chunk to chunk; or, with few
// heads, wave after wave of chunks: their matrices side by side, then the states, a slice of columns each.
#include <algorithm>
#include <cstring>

#include "isomer/laws/delta/delta_plan.h"

namespace isomer::delta_detail {

namespace {

template <class T>
struct Forward {
  using Slice = typename Plan<T>::Slice;
  const Plan<T>& plan;
  View<T, 4> o;  // absent: only edges are wanted
  View<T, 4> final_state;
  T* edges;  // where to keep every edge; null: nowhere
  Context& context;

  // Rows of some columns into an edge, if there is one.
  void keep(const T* from, Index rows, const typename Plan<T>::Columns& columns, T* edge) const {
    for (Index i = 0; edge && i < rows; ++i)
      std::memcpy(edge + i * plan.V + columns.begin, from + i * columns.width, std::size_t(columns.width) * sizeof(T));
  }

  // Heads h … h + count − 1, chunk after chunk.
  template <Isa I>
  void group(Index n, Index h, Index count, Workspace& workspace) const {
    const Matrices<T> m = plan.take_matrices(workspace);
    const LoadScratch<T> s = plan.take_load_scratch(workspace);
    const Index each = round_up(plan.K * plan.V, kPad), chunks = plan.chunks(n);
    const auto columns = plan.all_columns();
    T* all = workspace.take<T>(count * each);
    for (Index i = 0; i < count; ++i) plan.fetch(plan.in.initial_state, n, h + i, columns, all + i * each);
    for (Index c = 0; c < chunks; ++c)
      for (Index i = 0; i < count; ++i) {
        const Rows<T> to = plan.rows(o, n, h + i, c);
        Ahead<T> ahead;
        ahead.add(to.data, to.stride, plan.V, plan.tokens_of(n, c));
        plan.add_ahead(ahead, n, h + i, c + 1);
        if (c + 1 < chunks) ahead.add(plan.edge(edges, n, h + i, c + 1), plan.V, plan.V, plan.K + plan.N());
        Kernels<T, I>::forward(plan.tokens(n, h + i, c), plan.rule, m, s, all + i * each, plan.edge(edges, n, h + i, c), to,
                               ahead);
      }
    for (Index i = 0; i < count; ++i) {
      keep(all + i * each, plan.K, columns, plan.edge(edges, n, h + i, chunks));
      plan.store(all + i * each, columns, final_state, n, h + i);
    }
  }

  // Columns of one head's state, over chunks [first, last): sz holds them, densely.
  template <Isa I>
  void carry(const Slice& slice, Index first, Index last, const Matrices<T>* waiting, T* sz) const {
    using Kernel = Kernels<T, I>;
    const auto [n, h, columns] = slice;
    for (Index c = first; c < last; ++c) {
      Tokens<T> x = plan.tokens(n, h, c);
      x.V = columns.width;
      x.v.data += columns.begin;
      const Matrices<T>& m = waiting[c - first];
      Kernel::solve(x, plan.rule, m, sz);
      keep(sz, plan.K + plan.rule.writes() * x.C, columns, plan.edge(edges, n, h, c));
      const Rows<T> to = plan.rows(o, n, h, c);
      Ahead<T> ahead;
      if (c + 1 < last) {
        const Tokens<T> next = plan.tokens(n, h, c + 1);
        T* edge = plan.edge(edges, n, h, c + 1);
        if (edge) ahead.add(edge + columns.begin, plan.V, columns.width, plan.K + plan.rule.writes() * next.C);
        ahead.add(next.v.data + columns.begin, next.v.stride, columns.width, next.C);
      }
      Kernel::advance(x, plan.rule, m, sz, {to.data ? to.data + columns.begin : nullptr, to.stride}, ahead);
    }
  }

  template <Isa I>
  void split() const {
    Workspace& own = context.workspace();
    const Index heads = plan.heads(), wave = plan.wave(kWave), slices = plan.slices();
    const Index each = (plan.K + plan.N()) * kSlice;
    // Matrices of two waves: while the states go through one, the next is made, so that no thread waits in between.
    Matrices<T>* waiting = own.take<Matrices<T>>(2 * heads * wave);
    for (Index i = 0; i < 2 * heads * wave; ++i) waiting[i] = plan.take_matrices(own);
    T* states = own.take<T>(heads * slices * each);
    for (Index i = 0; i < heads * slices; ++i) {
      const auto [n, h, columns] = plan.slice(i);
      plan.fetch(plan.in.initial_state, n, h, columns, states + i * each);
    }
    const auto load = [&](Index first, Index task, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const Index n = task / wave / plan.H, h = task / wave % plan.H, c = first + task % wave;
      if (c >= plan.chunks(n)) return;
      const Matrices<T>& to = waiting[first / wave % 2 * heads * wave + task];
      Kernels<T, I>::load(plan.tokens(n, h, c), plan.rule, to, plan.take_load_scratch(workspace));
    };
    context.parallel(heads * wave, [&](Index task, Workspace& workspace) { load(0, task, workspace); });
    for (Index first = 0; first < plan.longest(); first += wave) {
      const Index carries = heads * slices, loads = first + wave < plan.longest() ? heads * wave : 0;
      context.parallel(carries + loads, [&](Index task, Workspace& workspace) {
        if (task >= carries) return load(first + wave, task - carries, workspace);
        const Slice slice = plan.slice(task);
        carry<I>(slice, first, std::min(first + wave, plan.chunks(slice.n)),
                 waiting + (first / wave % 2 * heads + task / slices) * wave, states + task * each);
      });
    }
    for (Index i = 0; i < heads * slices; ++i) {
      const auto [n, h, columns] = plan.slice(i);
      keep(states + i * each, plan.K, columns, plan.edge(edges, n, h, plan.chunks(n)));
      plan.store(states + i * each, columns, final_state, n, h);
    }
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
void forward(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context) {
  T* edges = out.tape ? out.tape->record(plan.C, plan.all_edges() * plan.edge_size()) : nullptr;
  Forward<T>{plan, out.o, out.final_state, edges, context}.run();
}

template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context) {
  Forward<T>{plan, {}, {}, edges, context}.run();
}

template void forward(const Plan<float>&, const DeltaOutputs<float>&, Context&);
template void forward(const Plan<double>&, const DeltaOutputs<double>&, Context&);
template void forward_edges(const Plan<float>&, float*, Context&);
template void forward_edges(const Plan<double>&, double*, Context&);

}  // namespace isomer::delta_detail
