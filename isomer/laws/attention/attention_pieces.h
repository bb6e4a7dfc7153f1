#pragma once
// What the tiled kernels are called on: one head of one sequence. Shared by the forward and the backward schedule.
#include <algorithm>
#include <numbers>

#include "isomer/laws/attention/attention_chunk.h"
#include "isomer/laws/attention/attention_problem.h"

namespace isomer::attention_detail {

/// With at least this many heads each head is one task of the backward pass; with fewer, its blocks of keys are shared out. A
/// matter of the shape alone, so that results do not depend on the number of threads.
inline constexpr Index kManyHeads = 8;

/// One head of one sequence, and what its kernels read besides q, k and v.
template <class T>
struct Piece {
  Head<T> head;
  Sequence s;
  Index h, n;  // n: which sequence
};

/// How far keys may be from a query: those before it are at negative places.
struct Places {
  Index first, last;

  Places(const Problem& p, const Sequence& s)
      : first(1 - p.first() - std::max<Index>(s.length, 1)), last(p.keys(s) - 1 - p.first()) {}
  [[nodiscard]] Index count() const { return std::max<Index>(last - first + 1, 1); }
  /// An array that is indexed by them.
  template <class U>
  [[nodiscard]] U* take(Workspace& scratch) const {
    return scratch.take<U>(count()) - first;
  }
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
  const Places places(p, s);
  T* bias = in.bias.present() ? places.take<T>(scratch) : nullptr;
  for (Index r = places.first; bias != nullptr && r <= places.last; ++r)
    bias[r] = T(double(in.bias(h, p.place(r))) * std::numbers::log2e);
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
                     .bias = bias,
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

/// Are the sums before the normaliser all there is to do? Then they go to o itself, else to the tape or scratch.
inline bool plain(const Problem& p) {
  return !p.taylor() && p.options.normaliser == AttentionOptions::Normaliser::sum && p.eps == 0.0;
}

}  // namespace isomer::attention_detail
