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

  // Where the columns of an edge are kept, if they are.
  [[nodiscard]] Kept<T> kept(const HeadColumns& at, Index c) const {
    T* edge = plan.edge(edges, at.n, at.h, c);
    if (!edge) return {nullptr, {nullptr, 0}};
    return {edge + at.columns.begin * plan.K, only(at.columns, Rows<T>{edge + plan.K * plan.V, plan.V})};
  }

  struct TaskScratch {
    Matrices<T> matrices;
    LoadScratch<T> load;
  };
  [[nodiscard]] TaskScratch take_scratch(Workspace& workspace) const {
    return {plan.take_matrices(workspace), plan.take_load_scratch(workspace)};
  }
  [[nodiscard]] T* enter(const HeadColumns& at, const TaskScratch&, Workspace& workspace) const {
    T* state = workspace.take<T>(round_up(plan.K * at.columns.width, kPad));
    fetch_state(plan.in.initial_state, at, plan.K, state);
    return state;
  }
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const TaskScratch& s, T* state) const {
    const auto& [n, h, columns] = at;
    const Rows<T> to = only(columns, plan.rows(o, n, h, c));
    const Kept<T> next = kept(at, c + 1);
    PrefetchList<T> ahead;
    ahead.add(to.data, to.stride, columns.width, plan.tokens_of(n, c));
    plan.add_prefetch(ahead, n, h, c + 1, columns);
    ahead.add(next.state_t, plan.K, plan.K, columns.width);
    if (c + 1 < plan.chunks(n)) ahead.add(next.z.data, next.z.stride, columns.width, plan.N());
    Kernels<T, I>::forward(only(columns, plan.tokens(n, h, c)), plan.rule, s.matrices, s.load, state, kept(at, c), to, ahead);
  }
  template <Isa I>
  void leave(const HeadColumns& at, const TaskScratch&, T* state) const {
    store_state(state, plan.K, final_state, at);
  }
};

}  // namespace

template <class T>
void forward(const Plan<T>& plan, const DeltaOutputs<T>& out, Context& context) {
  T* edges = out.tape ? out.tape->record(plan.C, plan.all_edges() * plan.edge_size()) : nullptr;
  carry_slices<Order::forward>(Forward<T>{plan, out.o, out.final_state, edges}, context);
}

template <class T>
void forward_edges(const Plan<T>& plan, T* edges, Context& context) {
  carry_slices<Order::forward>(Forward<T>{plan, {}, {}, edges}, context);
}

template void forward(const Plan<float>&, const DeltaOutputs<float>&, Context&);
template void forward(const Plan<double>&, const DeltaOutputs<double>&, Context&);
template void forward_edges(const Plan<float>&, float*, Context&);
template void forward_edges(const Plan<double>&, double*, Context&);

}  // namespace isomer::delta_detail
