#pragma once
// What the scheduler (channel_decay_forward.cc, channel_decay_backward.cc) hands to the kernels of one Isa
// (channel_decay_*_impl.h): one chunk of one head as plain pointers, the state at its edge, and the scratch that the kernels
// need.
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"
#include "isomer/laws/chunk_rows.h"

namespace isomer::channel_decay_detail {

using chunk::kPad;
using chunk::PrefetchList;
using chunk::Rows;

/// Tokens of a block. Inside a block pairs of tokens are weighed one by one, between blocks by matrix products; README.md says
/// why. Whole vectors of keys, so that matrix products and moved keys have no tail.
inline constexpr Index kBlock = 16;
/// walk() has groups of at least so many tokens in place of blocks.
inline constexpr Index kSmallestGroup = 3;

/// The options, as the kernels see them.
template <class T>
struct Rule {
  bool before;  // outputs read the state before the token
  double scale;
  const T* bonus;  // [padded(K)] weight of the own token in each channel, if before; else it is 1
};

/// C tokens of one head.
template <class T>
struct Tokens : chunk::Tokens<T> {
  Rows<const T> log_decay;
  bool empty;  // the state before these is zero
};

/// Rows of keys and queries in the scratch are padded, with zeros in q and k, so that loops over channels have no tail.
ISOMER_INLINE constexpr Index padded(Index K) { return round_up(K, kPad); }
/// From row to row in the scratch: never a multiple of 64 elements, or the rows of a chunk would meet in a few sets of L1.
ISOMER_INLINE constexpr Index row_of(Index width) { return round_up(width, kPad) + (round_up(width, kPad) % 64 == 0 ? kPad : 0); }
ISOMER_INLINE constexpr Index blocks_of(Index C) { return ceil_div(C, kBlock); }

/// Scratch of a chunk. P = padded(K); rows of P elements are row_of(K) apart.
template <class T>
struct Scratch {
  T *q, *k, *decay;          // [C,P] scaled q, k, e^log_decay
  T *q_block, *k_block;      // [C,P] q with the decays since its block began, k with those until its block ends
  T *block_decay, *entered;  // [blocks,P] product of the decays of a block (or group); [blocks,P] of all blocks before it
  T* carry;                  // [P] product of all decays of the chunk
  T* qw;                     // [C, K + C] q with the decays since the chunk began, then the weights of the chunk's tokens
  Index qw_stride;
  T* kt;  // [K, C] transposed k_block, moved on from block to block
  Index kt_stride;
};

/// What the backward kernels need beside the above.
template <class T>
struct BackwardScratch {
  T* keys;                       // [C,P] k_block, moved on from block to block
  T *vt, *y, *p;                 // [V,C] vᵀ; [C,V] gradient of o; [C,C] gradient of the weights
  T* back_t;                     // [V,K] the transposed gradient of the state after the chunk
  T *grad_q, *grad_k, *nowhere;  // [C,P] [C,P], and a row of K or V that nobody reads
  // Gradients of logarithms: of the state in a block's outputs; of what of the state passes over the block at hand, and with the
  // keys before it; and the gradient of the bonus. [blocks,P] [P] [P] [P]
  T *from_state, *over, *passing, *grad_bonus;
};

/// A chunk's rows outside the scratch; any may be null.
template <class T>
struct BackwardRows {
  Rows<const T> grad_o;
  Rows<T> grad_q, grad_k, grad_v, grad_log_decay;
  T* grad_bonus;  // [K] the chunk's share
  PrefetchList<T> ahead;
};

/// Where a step reads the state [K,V] and where it leaves it: rows of V dense elements, the same memory or not.
template <class T>
struct StepState {
  Rows<const T> from;
  Rows<T> to;
  T *q, *k, *decay;  // scratch [P]
};

/// Which decays k_block takes with it: up to the end of its block, or of the chunk (all that a state needs).
enum class Reach { block, chunk };

/// The kernels; defined in channel_decay_{chunk,walk,backward,step}_impl.h, instantiated once for each Isa. `sv` is [K + C, V]:
/// the state before the chunk, then v.
template <class T, Isa I>
struct Kernels {
  /// Decays and keys of the chunk into the scratch, and v into sv unless that is null.
  static void load(const Tokens<T>& x, Reach reach, const Scratch<T>& s, T* sv) noexcept;
  /// o, after load(Reach::block).
  static void read(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const T* sv, Rows<T> o,
                   const PrefetchList<T>& ahead) noexcept;
  /// The state after the chunk in place of the one before, in sv, after load(Reach::chunk) or read().
  static void write(const Tokens<T>& x, Reach reach, const Scratch<T>& s, T* sv, const PrefetchList<T>& ahead) noexcept;
  /// o, and the state [K,V] after the chunk in place of the one before, a few tokens at a time: what load(), read() and write()
  /// do.
  static void walk(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, T* state, Rows<T> o,
                   const PrefetchList<T>& ahead) noexcept;
  /// A state as backward reads it: `state` has some columns of it, [K,width]; `to` [V,K] has all of them.
  static void keep(Index K, Columns columns, const T* state, T* to) noexcept;
  /// All gradients of the chunk, after load(Reach::block), given the transposed state before it and the gradient `back` of the
  /// state after it, which becomes that of the state before.
  static void backward(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const BackwardScratch<T>& b,
                       const T* state_t, T* back, const BackwardRows<T>& io) noexcept;
  /// Only what the chunk's outputs give to the gradient of the state before it, after load().
  static void backward_state(const Tokens<T>& x, const Rule<T>& rule, const Scratch<T>& s, const BackwardScratch<T>& b,
                             Rows<const T> grad_o, T* back) noexcept;
  /// Token after token of one head, one pass over the state for each.
  static void step(const Tokens<T>& x, const Rule<T>& rule, const StepState<T>& s, Rows<T> o) noexcept;
  /// to = Diag(carry) from + to over rows of V elements: one step of the pass over edges.
  static void advance(const T* carry, const T* from, T* to, Index rows, Index V) noexcept;
};

}  // namespace isomer::channel_decay_detail
