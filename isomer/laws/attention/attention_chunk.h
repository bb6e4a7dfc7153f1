#pragma once
// What the scheduler (attention.cc) hands to the kernels of one Isa (attention_chunk_impl.h): one head of one sequence as plain
// pointers, and the scratch that the kernels need. Logits live in base 2: they carry a factor log2(e) that exp2 takes out again.
#include <limits>

#include "isomer/base/cpu.h"
#include "isomer/base/index.h"
#include "isomer/laws/chunk_rows.h"

namespace isomer::attention_detail {

/// The keys a query sees: [begin, end) and, before them, the sinks [sink_begin, sink_end). Both ends never decrease with the
/// query.
struct Visible {
  Index sink_begin, sink_end, begin, end;
};

using chunk::Rows;

template <class T>
struct Head {
  Index T_, S, K, V;
  Rows<const T> q, k, v;
  const Visible* visible;  // [T]
  /// Prefix sums of log_forget (base 2) of the keys, as hi + lo: differences of hi are exact where they matter. Null: none.
  const T *forget_hi, *forget_lo;
  const T* bias;  // [1 − first − T_ … S − 1 − first] of a key so many tokens behind the query's own, in base 2; null: none
  Index first;         // position of the first query among the keys
  Index below, above;  // a query at position p sees keys in [p − below, p + above] (sinks aside)
  T scale;             // of the logits; with log2(e) for the exp kernel
  T clamp;             // of the logits, as scaled; +inf: none
  int order;           // of the Taylor polynomial, −1: exp
  Index block_q, block_k;

  [[nodiscard]] ISOMER_INLINE bool clamps() const { return clamp < std::numeric_limits<T>::infinity(); }
};

/// Largest tiles. 96 queries are 16 whole register tiles of 6 rows; the tile of logits (96 × 256 floats, 96 KiB) lies in a 512
/// KiB L2 beside the panels that stream through it, and a panel of 256 values (16 KiB) stays in a 32 KiB L1 while all queries
/// pass.
inline constexpr Index kBlockQueries = 96;
inline constexpr Index kBlockKeys = 256;

/// Operands in the order in which the micro-kernels read them, all of one head.
template <class T>
struct Packed {
  T* keys_t;    // panels of kᵀ, for logits
  T* values;    // panels of v, for outputs
  T* values_t;  // panels of vᵀ, for gradients of weights
  T* keys;      // panels of k, for gradients of q
};
/// Elements to reserve for each member of Packed: whole panels of any type and Isa.
ISOMER_INLINE Index packed_size(Index S, Index D) { return round_up(S, chunk::kPad) * round_up(D, chunk::kPad); }

template <class T>
struct ForwardScratch {
  T *q, *logits, *sums, *high, *total;  // [bq,K] [bq,bk] [bq,V] [bq] [bq]
};

/// All that the backward pass reads and adds to for one head.
template <class T>
struct Backward {
  // In the order of the micro-kernels, filled by pack_queries a block at a time (but grad).
  T *q, *q_panels;              // [T,K] scaled, and the same as panels of a block of queries
  const T* grad;                // [T,V] gradient of the sums
  T* grad_panels;               // and its panels
  const T* scale;               // [T] log-sum in base 2 (exp kernel)
  const T* delta;               // [T] what is taken from every gradient of a weight of the row
  T *weights, *logits;          // [bq,bk] each
  T* slopes;                    // [bq,bk], Taylor kernel only
  T* passes;                    // [bq,bk], with a clamp only: 1 where a gradient passes to the logit, else 0
  T* grad_q;                    // [T,K] added to
  T *grad_k, *grad_v;           // [S,K] and [S,V], set block by block
  double *forget_q, *forget_k;  // [T] and [S], added to; null without a forget gate
  double* bias;                 // as Head::bias, added to; null without one
};

/// Queries of a step that share keys and values: as many as leave registers for keys.
inline constexpr Index kStepQueries = 4;
template <class T>
struct StepQueries {
  Index count = 0;
  const T* q[kStepQueries] = {};     // [K] each
  const T* bias[kStepQueries] = {};  // [S] each, added to the logits; null: none
};
/// What becomes of them: weights are relative to the largest logit, `high` (exp kernel; 0 otherwise), and are added up in total.
template <class T>
struct StepSums {
  T *sums, *high, *total;  // [count,V] Σ w v, [count], [count]
};

/// The kernels; defined in attention_{forward,step,backward}_impl.h, instantiated once for each Isa.
template <class T, Isa I>
struct Kernels {
  /// Packs the keys [begin, end) of the head; begin is a multiple of block_k. Null members of `packed` are left out.
  static void pack_keys(const Head<T>& head, const Packed<T>& packed, Index begin, Index end) noexcept;
  /// Queries [begin, begin + rows): sums [rows,V] = Σ w v / Σ w and scale = log Σ w (exp), or Σ w v and Σ w (Taylor).
  static void forward_block(const Head<T>& head, const Packed<T>& packed, Index begin, Index rows,
                            const ForwardScratch<T>& scratch, Rows<T> out, Rows<T> scale) noexcept;
  /// Some queries against the keys [0, S) of the head in any order. scores: scratch [count,S].
  static void step(const Head<T>& head, const StepQueries<T>& queries, T* scores, const StepSums<T>& to) noexcept;
  /// Scales and packs queries [begin, begin + rows) and packs their gradients; begin is a multiple of block_q.
  static void pack_queries(const Head<T>& head, const Backward<T>& b, Index begin, Index rows) noexcept;
  /// Keys [begin, begin + columns) against every query that sees them.
  static void backward_block(const Head<T>& head, const Packed<T>& packed, const Backward<T>& b, Index begin,
                             Index columns) noexcept;
};

}  // namespace isomer::attention_detail
