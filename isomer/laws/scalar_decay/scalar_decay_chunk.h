#pragma once
// What the scheduler (scalar_decay_forward.cc, scalar_decay_backward.cc) hands to the kernels of one Isa (scalar_decay_*_impl.h):
// one chunk of one head as plain pointers, the state at its edge, and the scratch that the kernels need.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"
#include "isomer/laws/chunk_rows.h"

namespace isomer::scalar_decay_detail {

using chunk::kPad;
using chunk::PrefetchList;
using chunk::Rows;

/// The options, as the kernels see them.
struct Rule {
  bool causal;      // a token sees those before it; else only the state, which is that of the whole sequence
  bool divides;     // sum, max
  bool stabilised;  // max
  bool centred;     // subtract
  bool gated;       // there are gates, or a stabiliser that acts like one
  double scale, eps;
};

/// C tokens of one head.
template <class T>
struct Tokens : chunk::Tokens<T> {
  Rows<const T> log_decay, log_input;  // one element a row; null: none
  double count;                        // tokens before these (subtract)
  bool first;                          // of the sequence: only here the sums beside a centred state are not zero
  bool empty;                          // the state before these is zero
};

/// The state at the edge of a chunk, or its gradient. `subtract`: sums of (k − key_mean)(v − value_mean)ᵀ and, in norm and
/// value_sum, of k − key_mean and v − value_mean: zero, but before the first chunk when there are sums without a count.
template <class T>
struct Edge {
  T *state, *norm, *value_sum;     // [K,V] [K] [V]
  T *key_mean, *value_mean, *max;  // [K] [V] [1]
};
/// Elements of an edge that a pass over chunks adds up, and all of them. Edges are kept a cache line apart.
ISOMER_INLINE Index edge_sums(Index K, Index V) { return K * V + K + V; }
ISOMER_INLINE Index edge_size(Index K, Index V) { return (K * V + 2 * (K + V) + 1 + 15) / 16 * 16; }
template <class T>
ISOMER_INLINE Edge<T> edge_at(T* p, Index K, Index V) {
  T* norm = p + K * V;
  return {p, norm, norm + K, norm + K + V, norm + 2 * K + V, norm + 2 * K + 2 * V};
}

/// Gates of a chunk: row_i + column_j is the logarithm of the weight of token j in output i, as hi + lo so that differences of
/// large prefix sums are exact where they matter.
template <class T>
struct Gates {
  double *row, *column, *in, *out, *floor;     // [C] logarithms
  double *row_rest, *column_rest;              // [C] what rounding took from the first two
  T *row_hi, *row_lo, *column_hi, *column_lo;  // [C]
  T *from_state, *to_state;                    // [C] weight of the old state in output i, of token j in the new state
  T* at_edge;                                  // [C] weight of token j seen from the edge before the chunk: e^(column_j − edge)
  T *from_state_lo, *at_edge_lo;               // [C] what rounding took from their logarithms
  Index* factored;                             // [1] rows (and columns) of which a weight is from_state_i · at_edge_j
  Index* gradual;                              // [1] 1: some other weights may lie below the normal range of the type
  T* one;                                      // [C] 1 in the scale of output i (stabilised)
  Index* begin;                                // [C] first token that i sees: where all was last forgotten
  T* carry;                                    // [1] weight of the old state in the new one
  T* rescale;   // [1] backward, of an empty state: the part of that weight which the chunk's only segment leaves out
  double* max;  // [1] stabiliser of the new state

  /// Does token t forget all before it?
  [[nodiscard]] ISOMER_INLINE bool forgets(Index t) const { return *factored == 0 && begin[t] == t && in[t] == -__builtin_inf(); }
};

/// Scratch of the forward kernels.
template <class T>
struct Scratch {
  T* qw;  // [C, K + C] scaled q, then the weights of the chunk's tokens
  Index qw_stride;
  T* kt;  // [K, C] kᵀ
  Index kt_stride;
  T* sv;               // [K + C, V] the state before the chunk, then v, with its factor of the weights
  T *sums_k, *sums_v;  // [K] [V]
  T *inverse, *shift;  // [C] 1 / divisor; 1 − (q·norm) / n of `subtract`
  T* around;           // an edge without its state, which is in sv
  Gates<T> gates;
};

/// What the backward kernels need beside the above.
template <class T>
struct BackwardScratch {
  T *k, *vt, *y;                          // [C,K] k; [V,C] vᵀ; [C,V] gradient of o, then of the sums before the divisor
  T* back_t;                              // [V,K] the transposed gradient of the state after the chunk
  T *p, *decay;                           // [C,C] gradient of the weights; [C,C] their decays where these do not factor
  T *grad_q, *grad_k, *grad_v, *through;  // [C,K] [C,K] [C,V] [C,K]
  T *delta, *along_norm;                  // [C] gradient of q·norm; q·norm
  T* columns;                             // [C] sums of pairs
  T *shift_k, *shift_v;                   // [K] [V] means minus those of `about`
  // Gradients of the logarithms of what is multiplied, for the gates: of the state before in output i, of k_j in the outputs of
  // the chunk, of k_j in the state after, and of the pairs that a gate at t stands between. [C]
  double *from_state, *inner, *to_state, *between;
  double* kept;  // [1] of the state before in the state after
};

/// A chunk's rows outside the scratch; any may be null.
template <class T>
struct BackwardRows {
  Rows<const T> grad_o;
  Rows<T> grad_q, grad_k, grad_v;
  PrefetchList<T> ahead;
};

enum class Write { add, set };

/// Where a step reads the state [K,V] and where it leaves it: rows of V dense elements, the same memory or not.
template <class T>
struct StepState {
  Rows<const T> from;
  Rows<T> to;
  T *q, *k, *v, *mean;  // scratch [K] [K] [V] [V]
};

/// The kernels; defined in scalar_decay_{chunk,walk,backward,step}_impl.h, instantiated once for each Isa.
template <class T, Isa I>
struct Kernels {
  /// Gates, kᵀ and v of the chunk into the scratch.
  static void load(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s) noexcept;
  /// o, after load(). s.sv holds the state of `before`.
  static void read(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s, Rows<T> o,
                   const PrefetchList<T>& ahead) noexcept;
  /// The state after the chunk, after load() and read(). add: `after` is `before` and moves on. set: the sums of `after` become
  /// what the chunk adds to carry · before; its means are left alone.
  static void write(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Edge<T>& after, const Scratch<T>& s,
                    Write mode) noexcept;
  /// o, and the edge after the chunk in place of the one before, a few tokens at a time: what load(), read() and write() do, but
  /// for `subtract`.
  static void walk(const Tokens<T>& x, const Rule& rule, const Edge<T>& edge, const Scratch<T>& s, Rows<T> o,
                   const PrefetchList<T>& ahead) noexcept;
  /// The means after the chunk, without its sums.
  static void trace(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Edge<T>& after,
                    const Scratch<T>& s) noexcept;
  /// An edge as backward reads it: with its state transposed. `edge` has some columns of the state, and `to` all of them.
  static void keep(Index K, Index V, Columns columns, const Edge<T>& edge, const Edge<T>& to) noexcept;
  /// Backward, the state of `before` is transposed. Gates, k and v of the chunk into the scratch.
  static void backward_load(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                            const BackwardScratch<T>& b) noexcept;
  /// Gradients that come from the chunk's own outputs, after backward_load(): that of q is done and written to io.grad_q, those
  /// of k and v (b.grad_k, b.grad_v) still lack what comes through the state.
  static void backward_read(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                            const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept;
  /// Adds to those of k and v what comes through the state after the chunk, whose gradient is `back`, and writes them to
  /// io.grad_k and io.grad_v; b.k holds k. `about` has the means about which gradients of states are taken (subtract).
  static void backward_state(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                             const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about,
                             const BackwardRows<T>& io) noexcept;
  /// The gradient of the state before the chunk, after backward_read(). add: `back` held that of the state after. set: only what
  /// comes from the chunk's outputs.
  static void backward_write(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s,
                             const BackwardScratch<T>& b, const Edge<T>& back, const Edge<T>& about, Write mode) noexcept;
  /// Token after token of one head, one pass over the state for each. `edge` (but its state) moves on.
  static void step(const Tokens<T>& x, const Rule& rule, const Edge<T>& edge, const StepState<T>& s, Rows<T> o) noexcept;
  /// to = carry · from + to over `count` elements: one step of the pass over edges.
  static void advance(T carry, const T* from, T* to, Index count) noexcept;
};

}  // namespace isomer::scalar_decay_detail
