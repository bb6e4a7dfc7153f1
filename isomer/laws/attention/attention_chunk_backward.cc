// Schedules the tiled kernels, backward: which head, which block of keys, on which thread. No arithmetic of the law itself.
#include "isomer/base/watch.h"
#include "isomer/laws/attention/attention_pieces.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::attention_detail {

namespace {

/// Tasks that the keys of one head are dealt into when heads are few. Each has its own sums of grad_q.
constexpr Index kParts = 4;

/// The backward pass of one head, in stages that may each be shared out among threads.
template <class T>
class HeadBackward {
 public:
  HeadBackward(const Problem& p, const Piece<T>& piece, Index parts, Isa isa, Workspace& scratch)
      : p_(p), piece_(piece), head_(piece.head), places_(p, piece.s), parts_(parts), isa_(isa) {
    const Index T_ = head_.T_, S = head_.S, K = p.K, V = p.V;
    packed_ = {scratch.take<T>(packed_size(S, K)), nullptr, scratch.take<T>(packed_size(S, V)),
               scratch.take<T>(packed_size(S, K))};
    grad_ = scratch.take<T>(T_ * V), scale_ = scratch.take<T>(T_), delta_ = scratch.take<T>(T_);
    b_.q = scratch.take<T>(T_ * K), b_.q_panels = scratch.take<T>(packed_size(T_, K));
    b_.grad = grad_, b_.grad_panels = scratch.take<T>(packed_size(T_, V)), b_.scale = scale_, b_.delta = delta_;
    b_.grad_k = scratch.take<T>(S * K), b_.grad_v = scratch.take<T>(S * V);
    grad_q_ = scratch.take<T>(parts * T_ * K);
    if (head_.forget_hi != nullptr) {
      forget_q_ = scratch.take<double>(parts * T_), forget_k_ = scratch.take<double>(S);
      std::fill(forget_k_, forget_k_ + S, 0.0);
    }
    if (head_.bias != nullptr) bias_ = scratch.take<double>(parts * places_.count());
  }

  [[nodiscard]] Index query_blocks() const { return ceil_div(head_.T_, head_.block_q); }
  [[nodiscard]] Index key_blocks() const { return ceil_div(head_.S, head_.block_k); }

  /// Gradients of the normaliser, and the operands, of a block of queries.
  void prepare_queries(Index block, const AttentionInputs<T>& in, View<const T, 4> sums, const T* scale, View<const T, 4> grad_o,
                       View<T, 3> grad_gate) const {
    const Index begin = block * head_.block_q, rows = std::min(head_.block_q, head_.T_ - begin), b = piece_.s.batch, h = piece_.h;
    for (Index i = begin; i < begin + rows; ++i) {
      const Index t = piece_.s.first + i;
      const T *x = sums.at(b, t, h), l = scale[(b * p_.T + t) * p_.H + h];
      T* g = grad_ + i * p_.V;
      ScalarGradients s{0, 0};
      if (plain(p_))
        std::copy_n(grad_o.at(b, t, h), p_.V, g);
      else
        s = normalise_vjp(p_, x, l, double(p_.count(i, head_.S)), in.gate.present() ? double(in.gate(b, t, h)) : 1.0,
                          grad_o.at(b, t, h), g);
      double delta = -s.l;
      for (Index d = 0; d < p_.V && !p_.taylor(); ++d) delta += double(g[d]) * double(x[d]);
      delta_[i] = T(delta);
      scale_[i] = T(double(l) * std::numbers::log2e);
      if (grad_gate.present()) grad_gate(b, t, h) = T(s.gate);
    }
    with_law_isa<T>(isa_, [&]<Isa I>() { Kernels<T, I>::pack_queries(head_, b_, begin, rows); });
  }

  void prepare_keys(Index block) const {
    const Index begin = block * head_.block_k, end = std::min(begin + head_.block_k, head_.S);
    with_law_isa<T>(isa_, [&]<Isa I>() { Kernels<T, I>::pack_keys(head_, packed_, begin, end); });
  }

  /// Every key block of one part, and the gradients of its keys and values.
  void run_part(Index part, View<T, 4> grad_k, View<T, 4> grad_v, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const Index tile = std::min(head_.block_q, std::max<Index>(head_.T_, 1)) * head_.block_k;
    Backward<T> b = b_;
    b.weights = workspace.take<T>(tile), b.logits = workspace.take<T>(tile);
    b.slopes = p_.taylor() ? workspace.take<T>(tile) : nullptr;
    b.passes = head_.clamps() ? workspace.take<T>(tile) : nullptr;
    b.grad_q = grad_q_ + part * head_.T_ * p_.K;
    std::fill(b.grad_q, b.grad_q + head_.T_ * p_.K, T(0));
    b.forget_q = nullptr, b.forget_k = forget_k_;
    if (forget_q_ != nullptr) {
      b.forget_q = forget_q_ + part * head_.T_;
      std::fill(b.forget_q, b.forget_q + head_.T_, 0.0);
    }
    b.bias = nullptr;
    if (bias_ != nullptr) {
      double* own = bias_ + part * places_.count();
      std::fill(own, own + places_.count(), 0.0);
      b.bias = own - places_.first;
    }
    // Logits carry the factor log2(e) for exp, and so do the queries that grad_k is made of.
    const T unit = T(p_.taylor() ? 1.0 : std::numbers::ln2);
    for (Index block = 0; block < key_blocks(); ++block) {
      if (part_of(block) != part) continue;
      may_stop();  // a block of keys meets all queries
      const Index begin = block * head_.block_k, columns = std::min(head_.block_k, head_.S - begin);
      with_law_isa<T>(isa_, [&]<Isa I>() { Kernels<T, I>::backward_block(head_, packed_, b, begin, columns); });
      write_rows(b.grad_k, begin, columns, p_.K, unit, grad_k);
      write_rows(b.grad_v, begin, columns, p_.V, T(1), grad_v);
    }
  }

  /// Sums the parts of grad_q for a block of queries.
  void finish_queries(Index block, View<T, 4> grad_q) const {
    const Index begin = block * head_.block_q, rows = std::min(head_.block_q, head_.T_ - begin), n = rows * p_.K;
    T* sum = grad_q_ + begin * p_.K;
    for (Index part = 1; part < parts_; ++part) {
      const T* more = sum + part * head_.T_ * p_.K;
      for (Index i = 0; i < n; ++i) sum[i] += more[i];
    }
    write_rows(grad_q_, begin, rows, p_.K, T(p_.scale), grad_q);
  }

  /// A forget gate acts on every pair that it stands between: suffix sums of what queries get minus what keys get.
  void finish_forget(View<const T, 3> log_forget, View<T, 3> grad) const {
    if (forget_q_ == nullptr || !grad.present()) return;
    double sum = 0;
    for (Index j = head_.S - 1; j >= 0; --j) {
      const Index i = j - head_.first, t = piece_.s.first + j;
      for (Index part = 0; part < parts_ && i >= 0; ++part) sum += forget_q_[part * head_.T_ + i];
      sum -= forget_k_[j];
      const bool exact = log_forget(piece_.s.batch, t, piece_.h) == -std::numeric_limits<T>::infinity();
      grad(piece_.s.batch, t, piece_.h) = exact ? T(0) : T(sum);
    }
  }

  /// to [N] = the gradient of the head's bias.
  void finish_bias(double* to) const {
    if (bias_ == nullptr) return;
    std::fill(to, to + p_.distances, 0.0);
    for (Index part = 0; part < parts_; ++part)
      for (Index r = places_.first; r <= places_.last; ++r) to[p_.place(r)] += bias_[part * places_.count() + r - places_.first];
  }

 private:
  /// Causal blocks get cheaper along the keys; dealing them out and back again evens that out.
  [[nodiscard]] Index part_of(Index block) const {
    const Index i = block % (2 * parts_);
    return i < parts_ ? i : 2 * parts_ - 1 - i;
  }
  void write_rows(const T* from, Index begin, Index rows, Index width, T factor, View<T, 4> to) const {
    for (Index i = begin; i < begin + rows && to.present(); ++i) {
      T* row = to.at(piece_.s.batch, piece_.s.first + i, piece_.h);
      for (Index d = 0; d < width; ++d) row[d * to.stride[3]] = from[i * width + d] * factor;
    }
  }

  const Problem& p_;
  const Piece<T>& piece_;
  const Head<T>& head_;
  Places places_;
  Index parts_;
  Isa isa_;
  Packed<T> packed_;
  Backward<T> b_{};
  T *grad_, *scale_, *delta_, *grad_q_;
  double *forget_q_ = nullptr, *forget_k_ = nullptr, *bias_ = nullptr;
};

/// A gradient with a head for each of H: the caller's view, or scratch that is summed into it afterwards when heads are grouped.
template <class T>
View<T, 4> per_head(View<T, 4> wanted, Index H, Workspace& scratch) {
  if (!wanted.present() || wanted.shape[2] == H) return wanted;
  const auto [B, rows, G, D] = wanted.shape;
  return contiguous(scratch.take<T>(B * rows * H * D), {B, rows, H, D});
}

}  // namespace

template <class T>
void backward_chunk(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, const AttentionOutputs<T>& saved,
                    View<const T, 4> grad_o, const AttentionGradients<T>& grad, Context& context) {
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  AttentionOutputs<T> forward = saved;
  AttentionTape<T> tape;
  if (saved.tape == nullptr || saved.tape->scale.size() != p.B * p.T * p.H) {
    forward = {contiguous(scratch.take<T>(p.B * p.T * p.H * p.V), {p.B, p.T, p.H, p.V}), {}, &tape};
    forward_chunk(p, tiling, in, forward, context);
  }
  View<const T, 4> sums = forward.o;
  if (!plain(p)) sums = contiguous<const T>(forward.tape->sums.data(), {p.B, p.T, p.H, p.V});
  sums = dense_rows(sums, scratch);

  const View<T, 4> dq = per_head(grad.q, p.H, scratch), dk = per_head(grad.k, p.H, scratch), dv = per_head(grad.v, p.H, scratch);
  const Index heads = Index(p.sequences.size()) * p.H;
  const bool many = heads >= kManyHeads;
  // Of each sequence and head, added up in their order.
  double* bias = scratch.take<double>(heads * p.distances);
  const auto one_head = [&](Index task, Workspace& workspace, auto&& each) {
    const Workspace::Scope head_scope(workspace);
    const Piece<T> piece = make_piece(p, tiling, in, task / p.H, task % p.H, workspace);
    const Index parts = many ? 1 : kParts;
    const HeadBackward<T> head(p, piece, parts, context.isa(), workspace);
    each(head.query_blocks(),
         [&](Index i, Workspace&) { head.prepare_queries(i, in, sums, forward.tape->scale.data(), grad_o, grad.gate); });
    each(head.key_blocks(), [&](Index i, Workspace&) { head.prepare_keys(i); });
    each(parts, [&](Index i, Workspace& w) { head.run_part(i, dk, dv, w); });
    each(head.query_blocks(), [&](Index i, Workspace&) { head.finish_queries(i, dq); });
    head.finish_forget(in.log_forget, grad.log_forget);
    head.finish_bias(bias + task * p.distances);
  };
  if (many)
    context.parallel(heads, [&](Index task, Workspace& workspace) {
      one_head(task, workspace, [&](Index count, auto&& f) {
        for (Index i = 0; i < count; ++i) f(i, workspace);
      });
    });
  else
    for (Index task = 0; task < heads; ++task)
      one_head(task, scratch, [&](Index count, auto&& f) { context.parallel(count, f); });
  for (const auto& [per, group] : {std::pair{dq, grad.q}, {dk, grad.k}, {dv, grad.v}})
    if (group.present() && per.data != group.data) sum_groups<T>(per, group, context);
  for (Index h = 0; h < p.H && grad.bias.present(); ++h)
    for (Index i = 0; i < p.distances; ++i) {
      double sum = 0;
      for (Index task = h; task < heads; task += p.H) sum += bias[task * p.distances + i];
      grad.bias(h, i) = T(sum);
    }
}

template void backward_chunk(const Problem&, Tiling, const AttentionInputs<float>&, const AttentionOutputs<float>&,
                             View<const float, 4>, const AttentionGradients<float>&, Context&);
template void backward_chunk(const Problem&, Tiling, const AttentionInputs<double>&, const AttentionOutputs<double>&,
                             View<const double, 4>, const AttentionGradients<double>&, Context&);

}  // namespace isomer::attention_detail
