// Schedules the tiled kernels: which head, which block of queries or keys, on which thread. No arithmetic of the law itself.
#include "isomer/laws/attention/attention_chunk.h"

#include <algorithm>
#include <numbers>

#include "isomer/laws/attention/attention_problem.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::attention_detail {

namespace {

/// With at least this many heads each head is one task of the backward pass; with fewer, its blocks of keys are shared out. A
/// matter of the shape alone, so that results do not depend on the number of threads.
constexpr Index kManyHeads = 8;
/// Then forward, too, when the packed keys and values of a head stay in L2 until its last query has passed: bytes.
constexpr Index kHeadInCache = Index{1} << 19;
/// Tasks that the keys of one head are dealt into when heads are few. Each has its own sums of grad_q.
constexpr Index kParts = 4;

/// One head of one sequence, and what its kernels read besides q, k and v.
template <class T>
struct Piece {
  Head<T> head;
  Sequence s;
  Index h, n;  // n: which sequence
};

template <class T>
Piece<T> make_piece(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, Index n, Index h, Workspace& scratch) {
  const Sequence& s = p.sequences[std::size_t(n)];
  const Index keys = p.keys(s);
  const auto rows = [&](View<const T, 4> x) {
    return Rows<const T>{x.at(s.batch, s.first, group_of(h, p.H, x.shape[2])), x.stride[1]};
  };
  auto* visible = scratch.take<Visible>(s.length);
  T *hi = nullptr, *lo = nullptr;
  if (in.log_forget.present()) hi = scratch.take<T>(keys), lo = scratch.take<T>(keys);
  prepare_head(p, s, h, in.log_forget, visible, hi, lo);
  const bool whole = tiling == Tiling::whole;
  const Head<T> head{.T_ = s.length,
                     .S = keys,
                     .K = p.K,
                     .V = p.V,
                     .q = rows(in.q),
                     .k = rows(in.k),
                     .v = rows(in.v),
                     .visible = visible,
                     .forget_hi = hi,
                     .forget_lo = lo,
                     .first = p.first(),
                     .below = p.below(),
                     .above = p.above(),
                     .scale = T(p.scale * p.logit_unit()),
                     .clamp = T(p.options.clamp * p.logit_unit()),
                     .order = p.taylor() ? p.options.order : -1,
                     .block_q = whole ? std::max<Index>(s.length, 1) : kBlockQueries,
                     .block_k = whole ? std::max(round_up(keys, chunk::kPad), chunk::kPad) : kBlockKeys};
  return {head, s, h, n};
}

/// Keys and values in the order of the micro-kernels, one set for each sequence and head of k or v.
template <class T>
class PackedInputs {
 public:
  PackedInputs(const Problem& p, const PoolVector<Piece<T>>& pieces, Index Gk, Index Gv, Context& context)
      : H_(p.H), Gk_(Gk), Gv_(Gv), keys_t_(p.sequences.size() * std::size_t(Gk)), values_(p.sequences.size() * std::size_t(Gv)) {
    Workspace& scratch = context.workspace();
    struct Job {
      const Head<T>* head;
      Packed<T> to;
      Index begin, end;
    };
    PoolVector<Job> jobs;
    for (const Piece<T>& piece : pieces) {
      T*& keys_t = keys_t_[key_slot(piece)];
      T*& values = values_[value_slot(piece)];
      Packed<T> to{};
      if (keys_t == nullptr) to.keys_t = keys_t = scratch.take<T>(packed_size(piece.head.S, p.K));
      if (values == nullptr) to.values = values = scratch.take<T>(packed_size(piece.head.S, p.V));
      for (Index j = 0; j < piece.head.S && (to.keys_t != nullptr || to.values != nullptr); j += piece.head.block_k)
        jobs.push_back({&piece.head, to, j, std::min(j + piece.head.block_k, piece.head.S)});
    }
    with_law_isa<T>(context.isa(), [&]<Isa I>() {
      context.parallel(Index(jobs.size()), [&](Index i, Workspace&) {
        const Job& job = jobs[std::size_t(i)];
        Kernels<T, I>::pack_keys(*job.head, job.to, job.begin, job.end);
      });
    });
  }
  [[nodiscard]] Packed<T> of(const Piece<T>& piece) const {
    return {keys_t_[key_slot(piece)], values_[value_slot(piece)], nullptr, nullptr};
  }

 private:
  [[nodiscard]] std::size_t key_slot(const Piece<T>& x) const { return std::size_t(x.n * Gk_ + group_of(x.h, H_, Gk_)); }
  [[nodiscard]] std::size_t value_slot(const Piece<T>& x) const { return std::size_t(x.n * Gv_ + group_of(x.h, H_, Gv_)); }
  Index H_, Gk_, Gv_;
  PoolVector<T*> keys_t_, values_;
};

/// Where the sums before the normaliser go: o itself when that is all there is to do, else the tape or scratch.
bool plain(const Problem& p) { return !p.taylor() && p.options.normaliser == AttentionOptions::Normaliser::sum && p.eps == 0.0; }

template <class T>
void forward_rows(const Problem& p, const Piece<T>& piece, const Packed<T>& packed, Index begin, const AttentionOutputs<T>& out,
                  View<const T, 3> gate, Isa isa, Workspace& workspace) {
  const Head<T>& head = piece.head;
  const Index rows = std::min(head.block_q, head.T_ - begin), b = piece.s.batch, t = piece.s.first + begin, h = piece.h;
  const Workspace::Scope scope(workspace);
  const ForwardScratch<T> scratch{workspace.take<T>(rows * p.K), workspace.take<T>(rows * head.block_k),
                                  workspace.take<T>(rows * p.V), workspace.take<T>(rows), workspace.take<T>(rows)};
  T* scale = workspace.take<T>(rows);
  const bool direct = plain(p) && (out.o.stride[3] == 1 || p.V == 1);
  Rows<T> sums{direct ? out.o.at(b, t, h) : workspace.take<T>(rows * p.V), direct ? out.o.stride[1] : p.V};
  if (!plain(p) && out.tape != nullptr) sums = {out.tape->sums.data() + ((b * p.T + t) * p.H + h) * p.V, p.H * p.V};
  with_law_isa<T>(isa, [&]<Isa I>() { Kernels<T, I>::forward_block(head, packed, begin, rows, scratch, sums, {scale, 1}); });
  T* o = workspace.take<T>(p.V);
  for (Index i = 0; i < rows; ++i) {
    if (out.log_sum.present()) out.log_sum(b, t + i, h) = scale[i];
    if (out.tape != nullptr) out.tape->scale[(b * p.T + t + i) * p.H + h] = scale[i];
    if (direct) continue;
    normalise(p, sums.data + i * sums.stride, scale[i], double(p.count(begin + i, head.S)),
              gate.present() ? double(gate(b, t + i, h)) : 1.0, o);
    for (Index d = 0; d < p.V; ++d) out.o(b, t + i, h, d) = o[d];
  }
}

/// One head from its keys to its outputs.
template <class T>
void forward_head(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, Index task, const AttentionOutputs<T>& out,
                  Isa isa, Workspace& workspace) {
  const Workspace::Scope scope(workspace);
  const Piece<T> piece = make_piece(p, tiling, in, task / p.H, task % p.H, workspace);
  const Head<T>& head = piece.head;
  const Packed<T> packed{workspace.take<T>(packed_size(head.S, p.K)), workspace.take<T>(packed_size(head.S, p.V)), nullptr,
                         nullptr};
  with_law_isa<T>(isa, [&]<Isa I>() { Kernels<T, I>::pack_keys(head, packed, 0, head.S); });
  for (Index i = 0; i < head.T_; i += head.block_q) forward_rows(p, piece, packed, i, out, in.gate, isa, workspace);
}

template <class T>
PoolVector<Piece<T>> all_pieces(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, Workspace& scratch) {
  PoolVector<Piece<T>> pieces;
  for (Index n = 0; n < Index(p.sequences.size()); ++n)
    for (Index h = 0; h < p.H; ++h) pieces.push_back(make_piece(p, tiling, in, n, h, scratch));
  return pieces;
}

}  // namespace

template <class T>
void forward_chunk(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, const AttentionOutputs<T>& out,
                   Context& context) {
  if (out.tape != nullptr) {
    if (const Index n = plain(p) ? 0 : p.B * p.T * p.H * p.V; out.tape->sums.size() != n) out.tape->sums = Buffer<T>(n);
    if (const Index n = p.B * p.T * p.H; out.tape->scale.size() != n) out.tape->scale = Buffer<T>(n);
  }
  const Index heads = Index(p.sequences.size()) * p.H;
  const bool in_cache = std::ranges::all_of(
      p.sequences, [&](const Sequence& x) { return p.keys(x) * (p.K + p.V) * Index(sizeof(T)) <= kHeadInCache; });
  // Heads that share keys or values share what is packed of them.
  const bool own_keys = in.k.shape[2] == p.H && in.v.shape[2] == p.H;
  if (heads >= kManyHeads && own_keys && in_cache)
    return context.parallel(
        heads, [&](Index i, Workspace& workspace) { forward_head(p, tiling, in, i, out, context.isa(), workspace); });
  const Workspace::Scope scope(context.workspace());
  const PoolVector<Piece<T>> pieces = all_pieces(p, tiling, in, context.workspace());
  const PackedInputs<T> packed(p, pieces, in.k.shape[2], in.v.shape[2], context);
  struct Block {
    const Piece<T>* piece;
    Index begin;
  };
  PoolVector<Block> blocks;
  for (const Piece<T>& piece : pieces)
    for (Index i = 0; i < piece.head.T_; i += piece.head.block_q) blocks.push_back({&piece, i});
  // Causal work grows with the query, so the long blocks go first and the short ones fill the gaps at the end.
  context.parallel(Index(blocks.size()), [&](Index i, Workspace& workspace) {
    const Block& block = blocks[blocks.size() - 1 - std::size_t(i)];
    forward_rows(p, *block.piece, packed.of(*block.piece), block.begin, out, in.gate, context.isa(), workspace);
  });
}

template void forward_chunk(const Problem&, Tiling, const AttentionInputs<float>&, const AttentionOutputs<float>&, Context&);
template void forward_chunk(const Problem&, Tiling, const AttentionInputs<double>&, const AttentionOutputs<double>&, Context&);

namespace {

/// The backward pass of one head, in stages that may each be shared out among threads.
template <class T>
class HeadBackward {
 public:
  HeadBackward(const Problem& p, const Piece<T>& piece, Index parts, Isa isa, Workspace& scratch)
      : p_(p), piece_(piece), head_(piece.head), parts_(parts), isa_(isa) {
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
    // Logits carry the factor log2(e) for exp, and so do the queries that grad_k is made of.
    const T unit = T(p_.taylor() ? 1.0 : std::numbers::ln2);
    for (Index block = 0; block < key_blocks(); ++block) {
      if (part_of(block) != part) continue;
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
  Index parts_;
  Isa isa_;
  Packed<T> packed_;
  Backward<T> b_{};
  T *grad_, *scale_, *delta_, *grad_q_;
  double *forget_q_ = nullptr, *forget_k_ = nullptr;
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
}

template void backward_chunk(const Problem&, Tiling, const AttentionInputs<float>&, const AttentionOutputs<float>&,
                             View<const float, 4>, const AttentionGradients<float>&, Context&);
template void backward_chunk(const Problem&, Tiling, const AttentionInputs<double>&, const AttentionOutputs<double>&,
                             View<const double, 4>, const AttentionGradients<double>&, Context&);

}  // namespace isomer::attention_detail
