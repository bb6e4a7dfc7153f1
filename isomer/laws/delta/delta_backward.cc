// The order of the chunks, backward: as forward (delta_forward.cc), from the last chunk to the first.
#include <algorithm>

#include "isomer/laws/delta/delta_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::delta_detail {

namespace {

template <class T>
struct Backward {
  const Plan<T>& plan;
  const DeltaCotangents<T>& given;
  const DeltaGradients<T>& grad;
  const T* edges;  // states, one for each edge
  Context& context;

  [[nodiscard]] const T* edge(Index n, Index h, Index c) const { return plan.edge(edges, n, h, c); }
  [[nodiscard]] BackwardRows<T> rows_of(Index n, Index h, Index c) const {
    const auto rows = [&](const auto& x) { return plan.rows(x, n, h, c); };
    return {.grad_o = rows(given.o),
            .q = rows(grad.q),
            .k = rows(grad.k),
            .v = rows(grad.v),
            .a = rows(grad.a),
            .b = rows(grad.b),
            .beta = rows(grad.beta),
            .log_decay = plan.rule.gate == Gate::key ? rows(grad.key_log_decay) : rows(grad.log_decay),
            .ahead = {}};
  }
  // What this chunk writes, then what the chunk before it reads.
  [[nodiscard]] BackwardRows<T> rows_with_prefetch(Index n, Index h, Index c) const {
    BackwardRows<T> io = rows_of(n, h, c);
    const Index K = plan.K, C = plan.tokens_of(n, c);
    for (const Rows<T>& rows : {io.q, io.k, io.a, io.b}) io.ahead.add(rows.data, rows.stride, K, C);
    io.ahead.add(io.v.data, io.v.stride, plan.V, C);
    if (plan.rule.gate == Gate::key) io.ahead.add(io.log_decay.data, io.log_decay.stride, K, C);
    if (c == 0) return io;
    plan.add_prefetch(io.ahead, n, h, c - 1);
    const Rows<const T> next = plan.rows(given.o, n, h, c - 1);
    io.ahead.add(next.data, next.stride, plan.V, plan.C);
    io.ahead.add(edge(n, h, c - 1), plan.V, plan.V, K + plan.rule.writes() * plan.C);
    return io;
  }

  struct TaskScratch {
    Matrices<T> matrices;
    LoadScratch<T> load;
    BackwardScratch<T> backward;
  };
  [[nodiscard]] TaskScratch take_scratch(Workspace& workspace) const {
    return {plan.take_matrices(workspace), plan.take_load_scratch(workspace), plan.take_backward_scratch(workspace)};
  }
  [[nodiscard]] T* enter(const HeadColumns& at, const TaskScratch&, Workspace& workspace) const {
    T* back = workspace.take<T>(round_up(plan.K * plan.V, kPad));
    fetch_state(given.final_state, at, plan.K, back);
    return back;
  }
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const TaskScratch& s, T* back) const {
    Kernels<T, I>::backward(plan.tokens(at.n, at.h, c), plan.rule, s.matrices, s.load, edge(at.n, at.h, c), back, s.backward,
                            rows_with_prefetch(at.n, at.h, c));
  }
  template <Isa I>
  void leave(const HeadColumns& at, const TaskScratch&, const T* back) const {
    store_state(back, plan.K, grad.initial_state, at);
  }

  // What a chunk of a wave leaves for the later passes.
  struct Waiting {
    Matrices<T> m;
    T *back, *grads, *grad_z;
  };
  [[nodiscard]] Waiting take_waiting(Workspace& workspace) const {
    const Index K = plan.K, V = plan.V, C = plan.C, N = plan.N();
    return {plan.take_matrices(workspace), workspace.take<T>(K * V), workspace.take<T>(2 * C * V), workspace.take<T>(N * V)};
  }

  // Columns of the gradient of one head's state, over chunks [first, last) from the last.
  template <Isa I>
  void carry(const HeadColumns& at, Index first, Index last, const Waiting* waiting, T* back, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const auto& [n, h, columns] = at;
    const BackwardScratch<T> b = plan.take_backward_scratch(workspace);
    for (Index c = last; c-- > first;) {
      const Waiting& w = waiting[c - first];
      const Tokens<T> x = only(columns, plan.tokens(n, h, c));
      put_columns(back, columns, plan.K, w.back, plan.V);
      Kernels<T, I>::retreat(x, plan.rule, w.m, b, only(columns, plan.rows(given.o, n, h, c)), back);
      put_columns(b.grads, columns, 2 * x.C, w.grads, plan.V);
      put_columns(b.grad_z, columns, plan.rule.writes() * x.C, w.grad_z, plan.V);
    }
  }

  template <Isa I>
  void finish(const Waiting& w, Index n, Index h, Index c, Workspace& workspace) const {
    BackwardScratch<T> b = plan.take_backward_scratch(workspace);
    b.grads = w.grads;
    b.grad_z = w.grad_z;
    const Tokens<T> x = plan.tokens(n, h, c);
    const BackwardRows<T> io = rows_of(n, h, c);
    Kernels<T, I>::finish(x, plan.rule, w.m, plan.take_load_scratch(workspace), edge(n, h, c), w.back, b, io);
  }

  // Wave after wave from the last, and three of them at a time: the states go back through one, while the one after it is
  // finished and the one before it is made ready, so that threads meet once a wave.
  template <Isa I>
  void split() const {
    Workspace& own = context.workspace();
    const Index heads = plan.heads(), wave = plan.wave(kBackwardWave), slices = plan.slices(), each = plan.K * kSlice;
    constexpr Index kBuffers = 3;
    Waiting* waiting = own.take<Waiting>(kBuffers * heads * wave);
    for (Index i = 0; i < kBuffers * heads * wave; ++i) waiting[i] = take_waiting(own);
    T* backs = own.take<T>(heads * slices * each);
    for (Index i = 0; i < heads * slices; ++i) fetch_state(given.final_state, plan.slice(i), plan.K, backs + i * each);
    const Index waves = ceil_div(plan.longest(), wave), tasks = heads * wave;
    const auto buffer = [&](Index w) { return waiting + w % kBuffers * tasks; };
    // The chunk of a task of wave w: made ready, or finished.
    const auto visit = [&](Index w, Index task, bool done, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const Index n = task / wave / plan.H, h = task / wave % plan.H, c = w * wave + task % wave;
      if (c >= plan.chunks(n)) return;
      const Waiting& at = buffer(w)[task];
      if (done) return finish<I>(at, n, h, c, workspace);
      Kernels<T, I>::load(plan.tokens(n, h, c), plan.rule, at.m, plan.take_load_scratch(workspace));
    };
    // w counts down to −1, where the first wave is still to be finished.
    for (Index w = waves; w >= -1; --w) {
      const Index carries = w >= 0 && w < waves ? heads * slices : 0, finishes = w + 1 < waves ? tasks : 0,
                  loads = w > 0 ? tasks : 0;
      context.parallel(carries + finishes + loads, [&](Index task, Workspace& workspace) {
        if (task >= carries + finishes) return visit(w - 1, task - carries - finishes, false, workspace);
        if (task >= carries) return visit(w + 1, task - carries, true, workspace);
        const HeadColumns slice = plan.slice(task);
        const Index first = w * wave;
        carry<I>(slice, first, std::min(first + wave, plan.chunks(slice.n)), buffer(w) + task / slices * wave,
                 backs + task * each, workspace);
      });
    }
    for (Index i = 0; i < heads * slices; ++i) store_state(backs + i * each, plan.K, grad.initial_state, plan.slice(i));
  }

  void run() const {
    if (!plan.split) return carry_groups<Order::backward>(*this, context);
    with_law_isa<T>(context.isa(), [&]<Isa I>() { split<I>(); });
  }
};

}  // namespace

template <class T>
void backward(const Plan<T>& plan, const DeltaCotangents<T>& given, const DeltaGradients<T>& grad, Context& context) {
  Backward<T>{plan, given, grad, edges_of(given.tape, plan, context), context}.run();
}

template void backward(const Plan<float>&, const DeltaCotangents<float>&, const DeltaGradients<float>&, Context&);
template void backward(const Plan<double>&, const DeltaCotangents<double>&, const DeltaGradients<double>&, Context&);

}  // namespace isomer::delta_detail
