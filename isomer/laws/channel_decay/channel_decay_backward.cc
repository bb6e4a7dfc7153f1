// The order of the chunks, backward: as forward (channel_decay_forward.cc), from the last chunk to the first.
#include <algorithm>
#include <cstring>

#include "isomer/laws/channel_decay/channel_decay_plan.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::channel_decay_detail {

namespace {

// As forward: 4 KiB of floats.
constexpr Index kSlice = 1024;

template <class T>
struct Backward {
  const Plan<T>& plan;
  const ChannelDecayCotangents<T>& given;
  const ChannelDecayGradients<T>& grad;
  T* edges;  // transposed states, one for each edge
  T* bonus;  // [all_chunks, K] each chunk's share of the gradient of the bonus; null: not wanted
  Context& context;

  [[nodiscard]] Index chunk_index(Index n, Index h, Index c) const {
    return plan.first_chunk[n] * plan.H + h * plan.chunks(n) + c;
  }
  [[nodiscard]] BackwardRows<T> rows_of(Index n, Index h, Index c) const {
    return {.grad_o = plan.rows(given.o, n, h, c),
            .grad_q = plan.rows(grad.q, n, h, c),
            .grad_k = plan.rows(grad.k, n, h, c),
            .grad_v = plan.rows(grad.v, n, h, c),
            .grad_log_decay = plan.rows(grad.log_decay, n, h, c),
            .grad_bonus = bonus ? bonus + chunk_index(n, h, c) * plan.K : nullptr,
            .ahead = {}};
  }
  // The chunk before is next; what this one writes is prefetched, too.
  [[nodiscard]] BackwardRows<T> rows_with_prefetch(Index n, Index h, Index c) const {
    BackwardRows<T> io = rows_of(n, h, c);
    const Index K = plan.K, V = plan.V, C = plan.tokens_of(n, c);
    io.ahead.add(io.grad_v.data, io.grad_v.stride, V, C);
    io.ahead.add(io.grad_q.data, io.grad_q.stride, K, C);
    io.ahead.add(io.grad_k.data, io.grad_k.stride, K, C);
    io.ahead.add(io.grad_log_decay.data, io.grad_log_decay.stride, K, C);
    if (c == 0) return io;
    plan.add_prefetch(io.ahead, n, h, c - 1, plan.all_columns());
    const Rows<const T> next = plan.rows(given.o, n, h, c - 1);
    io.ahead.add(next.data, next.stride, V, plan.C);
    io.ahead.add(plan.state(edges, n, h, c - 1), K, K, V);
    return io;
  }

  struct TaskScratch {
    Scratch<T> chunk;
    BackwardScratch<T> backward;
  };
  [[nodiscard]] TaskScratch take_scratch(Workspace& workspace) const {
    return {plan.take_scratch(workspace), plan.take_backward_scratch(workspace)};
  }
  [[nodiscard]] T* enter(const HeadColumns& at, const TaskScratch&, Workspace& workspace) const {
    T* back = workspace.take<T>(plan.edge_size());
    fetch_state(given.final_state, at, plan.K, back);
    return back;
  }
  // All gradients of chunk c, given the gradient of the state after it, which becomes that of the state before.
  template <Isa I>
  void chunk(const HeadColumns& at, Index c, const TaskScratch& s, T* back) const {
    const auto& [n, h, columns] = at;
    const Tokens<T> x = plan.tokens(n, h, c);
    Kernels<T, I>::load(x, Reach::block, s.chunk, nullptr);
    Kernels<T, I>::backward(x, plan.rule(h), s.chunk, s.backward, plan.state(edges, n, h, c), back, rows_with_prefetch(n, h, c));
  }
  template <Isa I>
  void leave(const HeadColumns& at, const TaskScratch&, const T* back) const {
    store_state(back, plan.K, grad.initial_state, at);
  }

  // All chunks side by side: what their outputs give to the gradients of states, a pass over these, then all gradients.
  template <Isa I>
  void split() const {
    const Index P = padded(plan.K);
    Workspace& own = context.workspace();
    T* back = own.take<T>(plan.all_edges() * plan.edge_size());
    T* carries = own.take<T>(plan.all_edges() * P);
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const TaskScratch s = take_scratch(workspace);
      const Tokens<T> x = plan.tokens(n, h, c);
      Kernels<T, I>::load(x, Reach::block, s.chunk, nullptr);
      Kernels<T, I>::backward_state(x, plan.rule(h), s.chunk, s.backward, plan.rows(given.o, n, h, c), plan.state(back, n, h, c));
      std::copy_n(s.chunk.carry, P, carries + plan.edge_index(n, h, c) * P);
    });
    pass<I>(back, carries);
    context.parallel(plan.all_chunks(), [&](Index i, Workspace& workspace) {
      const Workspace::Scope scope(workspace);
      const auto [n, h, c] = plan.place(i);
      const TaskScratch s = take_scratch(workspace);
      T* after = workspace.take<T>(plan.edge_size());
      std::memcpy(after, plan.state(back, n, h, c + 1), std::size_t(plan.K * plan.V) * sizeof(T));
      chunk<I>({n, h, plan.all_columns()}, c, s, after);
    });
    for (Index i = 0; i < plan.heads(); ++i) {
      const HeadColumns at = plan.head(i);
      store_state(plan.state(back, at.n, at.h, 0), plan.K, grad.initial_state, at);
    }
  }

  template <Isa I>
  void pass(T* back, const T* carries) const {
    for (Index i = 0; i < plan.heads(); ++i) {
      const HeadColumns at = plan.head(i);
      fetch_state(given.final_state, at, plan.K, plan.state(back, at.n, at.h, plan.chunks(at.n)));
    }
    const Index rows = std::max<Index>(1, kSlice / plan.V), slices = ceil_div(plan.K, rows);
    context.parallel(plan.heads() * slices, [&](Index i, Workspace&) {
      const Index n = i / slices / plan.H, h = i / slices % plan.H, begin = i % slices * rows, at = begin * plan.V;
      for (Index c = plan.chunks(n); c-- > 0;)
        Kernels<T, I>::advance(carries + plan.edge_index(n, h, c) * padded(plan.K) + begin, plan.state(back, n, h, c + 1) + at,
                               plan.state(back, n, h, c) + at, std::min(rows, plan.K - begin), plan.V);
    });
  }

  // In the order of sequences and chunks, whatever thread worked on them.
  void sum_bonus() const {
    for (Index h = 0; h < plan.H; ++h)
      for (Index a = 0; a < plan.K; ++a) {
        double sum = 0;
        for (Index n = 0; n < Index(plan.sequences.size()); ++n)
          for (Index c = 0; c < plan.chunks(n); ++c) sum += double(bonus[chunk_index(n, h, c) * plan.K + a]);
        grad.bonus(h, a) = T(sum);
      }
  }

  void run() const {
    if (plan.split)
      with_law_isa<T>(context.isa(), [&]<Isa I>() { split<I>(); });
    else
      carry_groups<Order::backward>(*this, context);
    if (bonus) sum_bonus();
  }
};

}  // namespace

template <class T>
void backward(const Plan<T>& plan, const ChannelDecayCotangents<T>& given, const ChannelDecayGradients<T>& grad,
              Context& context) {
  T* bonus = grad.bonus.present() ? context.workspace().template take<T>(plan.all_chunks() * plan.K) : nullptr;
  Backward<T>{plan, given, grad, edges_of(given.tape, plan, context), bonus, context}.run();
}

template void backward(const Plan<float>&, const ChannelDecayCotangents<float>&, const ChannelDecayGradients<float>&, Context&);
template void backward(const Plan<double>&, const ChannelDecayCotangents<double>&, const ChannelDecayGradients<double>&,
                       Context&);

}  // namespace isomer::channel_decay_detail
