// The order of the chunks, forward: a task carries the states of some neighbouring heads, or some columns of one, from chunk to
// chunk.
#include "isomer/laws/delta/delta_plan.h"

namespace isomer::delta_detail {

namespace {

template <class T>
struct Forward {
  const Plan<T>& plan;
  View<T, 4> o;  // absent: only edges are wanted
  View<T, 4> final_state;
  T* edges;  // where to keep every edge; null: nowhere
  Context& context;

  // Where the columns of an edge are kept, if they are.
  [[nodiscard]] Kept<T> kept(Index n, Index h, Index c, Columns columns) const {
    T* edge = plan.edge(edges, n, h, c);
    if (!edge) return {nullptr, {nullptr, 0}};
    return {edge + columns.begin * plan.K, only(columns, Rows<T>{edge + plan.K * plan.V, plan.V})};
  }

  // Some columns of heads h … h + count − 1, chunk after chunk.
  template <Isa I>
  void group(Index n, Index h, Index count, Columns columns, Workspace& workspace) const {
    const Matrices<T> m = plan.take_matrices(workspace);
    const LoadScratch<T> s = plan.take_load_scratch(workspace);
    const Index each = round_up(plan.K * columns.width, kPad), chunks = plan.chunks(n);
    T* all = workspace.take<T>(count * each);
    for (Index i = 0; i < count; ++i) plan.fetch(plan.in.initial_state, n, h + i, columns, all + i * each);
    for (Index c = 0; c < chunks; ++c)
      for (Index i = 0; i < count; ++i) {
        const Rows<T> to = only(columns, plan.rows(o, n, h + i, c));
        const Kept<T> next = kept(n, h + i, c + 1, columns);
        Ahead<T> ahead;
        ahead.add(to.data, to.stride, columns.width, plan.tokens_of(n, c));
        plan.add_ahead(ahead, n, h + i, c + 1, columns);
        ahead.add(next.state_t, plan.K, plan.K, columns.width);
        if (c + 1 < chunks) ahead.add(next.z.data, next.z.stride, columns.width, plan.N());
        Kernels<T, I>::forward(only(columns, plan.tokens(n, h + i, c)), plan.rule, m, s, all + i * each,
                               kept(n, h + i, c, columns), to, ahead);
      }
    for (Index i = 0; i < count; ++i) {
      Kernels<T, I>::keep(plan.K, columns.width, all + i * each, kept(n, h + i, chunks, columns));
      plan.store(all + i * each, columns, final_state, n, h + i);
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
