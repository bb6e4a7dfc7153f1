// Schedules the tiled kernels, forward: which head, which block of queries, on which thread. No arithmetic of the law itself.
#include "isomer/laws/attention/attention_pieces.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer::attention_detail {

namespace {

/// Of many heads each is one task when its packed keys and values stay in L2 until its last query has passed: bytes.
constexpr Index kHeadInCache = Index{1} << 19;

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

}  // namespace isomer::attention_detail
