// The order of the chunks, backward: as forward (scalar_decay_forward.cc), from the last chunk to the first.
#include <algorithm>

#include "isomer/laws/scalar_decay/scalar_decay_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::scalar_decay_detail {

namespace {

// As forward: 4 KiB of floats.
constexpr Index kSlice = 1024;
// Numbers a token that the gates' gradients keep between the two passes over chunks.
constexpr Index kSaved = 3;

template <class T>
struct Backward {
  const Plan<T>& plan;
  const ScalarDecayCotangents<T>& given;
  const ScalarDecayGradients<T>& grad;
  T* edges;  // states, one for each edge
  Context& context;

  // A chunk as the kernels see it: causal ones read the edge before them, the others the state of the whole sequence.
  struct Piece {
    Index n, h, c;
    Tokens<T> x;
    Edge<T> before, about;
  };
  [[nodiscard]] Piece piece(Index n, Index h, Index c) const {
    const bool causal = plan.rule.causal;
    const Index last = plan.chunks(n);
    Piece p{n, h, c, plan.tokens(n, h, c), plan.edge(edges, n, h, causal ? c : last), plan.edge(edges, n, h, causal ? 0 : last)};
    if (!causal) {
      p.x.count = double(plan.sequences[n].length);
      p.x.first = p.x.empty = false;
    }
    return p;
  }

  // Where chunks ran side by side forward, too, the states are as they left them: not transposed.
  template <Isa I>
  [[nodiscard]] Piece turned(Piece p, Workspace& workspace) const {
    if (plan.walks) return p;
    const Edge<T> edge = plan.take_edge(workspace);
    Kernels<T, I>::keep(plan.K, plan.V, plan.all_columns(), p.before, edge);
    p.before = edge;
    return p;
  }

  // dlog_decay_t is what passes over t: kept + Σ_{r≥t} from_state_r + Σ_{j<t} to_state_j + pairs (i, j) with j < t ≤ i.
  void put_gates(const Piece& p, const Gates<T>& g, const BackwardScratch<T>& b) const {
    const Rows<T> input = plan.rows(grad.log_input, p.n, p.h, p.c), decay = plan.rows(grad.log_decay, p.n, p.h, p.c);
    for (Index t = 0; input.data && t < p.x.C; ++t) input.data[t * input.stride] = T(b.inner[t] + b.to_state[t]);
    if (!decay.data) return;
    // From the end: behind the last output that has a gradient all is exactly zero.
    double after = 0, before = *b.kept;
    for (Index t = p.x.C; t-- > 0;) {
      after += b.from_state[t];
      b.from_state[t] = after + b.between[t];
    }
    for (Index t = 0; t < p.x.C; ++t) {
      decay.data[t * decay.stride] = g.forgets(t) ? T(0) : T(b.from_state[t] + before);
      before += b.to_state[t];
    }
  }

  [[nodiscard]] BackwardRows<T> rows_of(Index n, Index h, Index c) const {
    return {.grad_o = plan.rows(given.o, n, h, c),
            .grad_q = plan.rows(grad.q, n, h, c),
            .grad_k = plan.rows(grad.k, n, h, c),
            .grad_v = plan.rows(grad.v, n, h, c),
            .ahead = {}};
  }
  // What this chunk writes, then what the chunk before it reads.
  [[nodiscard]] BackwardRows<T> rows_with_prefetch(Index n, Index h, Index c) const {
    BackwardRows<T> io = rows_of(n, h, c);
    const Index K = plan.K, V = plan.V, C = plan.tokens_of(n, c);
    PrefetchList<T>& a = io.ahead;
    a.add(io.grad_q.data, io.grad_q.stride, K, C);
    a.add(io.grad_k.data, io.grad_k.stride, K, C);
    a.add(io.grad_v.data, io.grad_v.stride, V, C);
    if (c == 0) return io;
    plan.add_prefetch(a, n, h, c - 1, plan.all_columns());
    const Rows<const T> next = plan.rows(given.o, n, h, c - 1);
    a.add(next.data, next.stride, V, plan.C);
    a.add(plan.edge(edges, n, h, c - 1).state, V, V, K);
    return io;
  }

  struct TaskScratch {
    Scratch<T> chunk;
    BackwardScratch<T> backward;
  };
  [[nodiscard]] TaskScratch take_scratch(Workspace& workspace) const {
    return {plan.take_scratch(workspace), plan.take_backward_scratch(workspace)};
  }
  // The edge whose means gradients of states are taken about.
  [[nodiscard]] Edge<T> about(const HeadColumns& at) const {
    return plan.edge(edges, at.n, at.h, plan.rule.causal ? 0 : plan.chunks(at.n));
  }
  [[nodiscard]] Edge<T> enter(const HeadColumns& at, const TaskScratch&, Workspace& workspace) const {
    const Edge<T> back = plan.take_edge(workspace);
    plan.enter_gradient(at, given.final_states, about(at), back);
    return back;
  }
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const TaskScratch& s, const Edge<T>& back) const {
    using Kernel = Kernels<T, I>;
    const Piece p = piece(at.n, at.h, c);
    Kernel::backward_load(p.x, plan.rule, p.before, s.chunk, s.backward);
    Kernel::backward_read(p.x, plan.rule, p.before, s.chunk, s.backward, rows_with_prefetch(p.n, p.h, p.c));
    if (plan.rule.causal) finish<I>(p, s, back);
    Kernel::backward_write(p.x, plan.rule, p.before, s.chunk, s.backward, back, p.about, Write::add);
  }
  template <Isa I>
  void leave(const HeadColumns& at, const TaskScratch& s, const Edge<T>& back) const {
    for (Index c = 0; c < plan.chunks(at.n) && !plan.rule.causal; ++c) finish_global<I>(piece(at.n, at.h, c), s, back);
    plan.leave_gradient(back, at, about(at), grad.initial);
  }

  template <Isa I>
  void finish(const Piece& p, const TaskScratch& s, const Edge<T>& back) const {
    Kernels<T, I>::backward_state(p.x, plan.rule, p.before, s.chunk, s.backward, back, p.about, rows_of(p.n, p.h, p.c));
    put_gates(p, s.chunk.gates, s.backward);
  }

  // Keys and values of a global state reach the outputs through it alone.
  template <Isa I>
  void finish_global(const Piece& p, const TaskScratch& s, const Edge<T>& back) const {
    Kernels<T, I>::backward_load(p.x, plan.rule, p.before, s.chunk, s.backward);
    std::fill_n(s.backward.inner, p.x.C, 0.0);
    finish<I>(p, s, back);
  }

  // All chunks side by side: gradients from their own outputs, a pass over the gradients of edges, then what comes through
  // states.
  template <Isa I>
  void split() const {
    Workspace& own = context.workspace();
    T* back = own.take<T>(plan.all_edges() * plan.edge_size());
    T* carries = own.take<T>(plan.all_edges());
    double* saved = own.take<double>(plan.all_chunks() * kSaved * plan.C);
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      read_one<I>(i, back, carries, saved + i * kSaved * plan.C, workspace);
    });
    pass<I>(back, carries);
    context.parallel(plan.all_chunks(),
                     [&](Index i, Workspace& workspace) { finish_one<I>(i, back, saved + i * kSaved * plan.C, workspace); });
    for (Index i = 0; i < plan.heads(); ++i) {
      const HeadColumns at = plan.head(i);
      plan.leave_gradient(plan.edge(back, at.n, at.h, 0), at, about(at), grad.initial);
    }
  }

  template <Isa I>
  void read_one(Index i, T* back, T* carries, double* saved, Workspace& workspace) const {
    using Kernel = Kernels<T, I>;
    const Workspace::Scope scope(workspace);
    const auto [n, h, c] = plan.place(i);
    const TaskScratch task = take_scratch(workspace);
    const Scratch<T>& s = task.chunk;
    const BackwardScratch<T>& b = task.backward;
    const Piece p = turned<I>(piece(n, h, c), workspace);
    Kernel::backward_load(p.x, plan.rule, p.before, s, b);
    Kernel::backward_read(p.x, plan.rule, p.before, s, b, rows_of(n, h, c));
    Kernel::backward_write(p.x, plan.rule, p.before, s, b, plan.edge(back, n, h, c), p.about, Write::set);
    carries[plan.edge_index(n, h, c)] = *s.gates.carry * *s.gates.rescale;
    for (const double* part : {b.from_state, b.inner, b.between}) {
      std::copy_n(part, p.x.C, saved);
      saved += plan.C;
    }
  }

  template <Isa I>
  void pass(T* back, const T* carries) const {
    context.parallel(plan.heads(), [&](Index i, Workspace&) {
      const HeadColumns at = plan.head(i);
      plan.enter_gradient(at, given.final_states, about(at), plan.edge(back, at.n, at.h, plan.chunks(at.n)));
    });
    const Index sums = edge_sums(plan.K, plan.V), slices = ceil_div(sums, kSlice);
    context.parallel(plan.heads() * slices, [&](Index i, Workspace&) {
      const Index n = i / slices / plan.H, h = i / slices % plan.H, begin = i % slices * kSlice;
      for (Index c = plan.chunks(n); c-- > 0;)
        Kernels<T, I>::advance(carries[plan.edge_index(n, h, c)], plan.edge(back, n, h, c + 1).state + begin,
                               plan.edge(back, n, h, c).state + begin, std::min(kSlice, sums - begin));
    });
  }

  template <Isa I>
  void finish_one(Index i, T* back, const double* saved, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const auto [n, h, c] = plan.place(i);
    const TaskScratch s = take_scratch(workspace);
    const BackwardScratch<T>& b = s.backward;
    const Piece p = turned<I>(piece(n, h, c), workspace);
    if (!plan.rule.causal) return finish_global<I>(p, s, plan.edge(back, n, h, 0));
    Kernels<T, I>::backward_load(p.x, plan.rule, p.before, s.chunk, b);
    for (double* part : {b.from_state, b.inner, b.between}) {
      std::copy_n(saved, p.x.C, part);
      saved += plan.C;
    }
    finish<I>(p, s, plan.edge(back, n, h, c + 1));
  }

  void run() const {
    if (!plan.split) return carry_groups<Order::backward>(*this, context);
    with_law_isa<T>(context.isa(), [&]<Isa I>() { split<I>(); });
  }
};

}  // namespace

template <class T>
void backward(const Plan<T>& plan, const ScalarDecayCotangents<T>& given, const ScalarDecayGradients<T>& grad, Context& context) {
  Backward<T>{plan, given, grad, edges_of(given.tape, plan, context), context}.run();
}

template void backward(const Plan<float>&, const ScalarDecayCotangents<float>&, const ScalarDecayGradients<float>&, Context&);
template void backward(const Plan<double>&, const ScalarDecayCotangents<double>&, const ScalarDecayGradients<double>&, Context&);

}  // namespace isomer::scalar_decay_detail
