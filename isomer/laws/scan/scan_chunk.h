#pragma once
// The kernels of scan: what a task does with a chunk of some channels. Rows are tokens, elements of a row are channels.
#include "isomer/base/cpu.h"
#include "isomer/laws/chunk_rows.h"

namespace isomer::scan_detail {

using chunk::Rows;

/// Channels of a block, whatever the instruction set: a line of floats, two AVX2 vectors of them. States of S6 are kept as blocks
/// [N,kBlock], so that a vector holds channels and the sum over the state is one of vectors.
inline constexpr Index kBlock = 16;

/// Some channels of a chunk of the plain scan. What is absent is null; complex numbers have an imaginary state.
template <class T>
struct Tokens {
  Rows<const T> log_decay, angle, x, x_imag;
  Index count, width;  // tokens, channels
};

/// States of `width` channels; imag is null when real.
template <class T>
struct State {
  T *real, *imag;
};

/// Rows outside, any may be null. streamed: what is written goes past the caches; its rows are aligned to lines.
template <class T>
struct ForwardRows {
  Rows<T> h, h_imag;
  bool streamed;
};
template <class T>
struct BackwardRows {
  Rows<const T> grad_h, grad_h_imag;
  Rows<T> grad_log_decay, grad_angle, grad_x, grad_x_imag;
  bool streamed;
};

/// Elements of scratch for a backward pass over `count` tokens: decays and what they keep of the state before, both complex.
inline constexpr Index kColumns = 64;
constexpr Index backward_scratch(Index count) { return 4 * kColumns * count; }

/// Some channels of a chunk of S6, at most a block in s6_forward() and kS6Widest in s6_backward(). c and o may be null in
/// forward() if only the state is wanted.
template <class T>
struct S6Tokens {
  Rows<const T> x, step, b, c;
  Index count, width, N;
  Index before, after;  // tokens of the sequence around the chunk, whose rows may be prefetched
};

/// What belongs to the channels of some blocks; channels that do not exist are 0.
template <class T>
struct S6Block {
  const T* a;        // [blocks,N,kBlock] in units of log 2: a·log2(e)
  const T* d;        // [blocks,kBlock]
  const T* largest;  // [blocks] |a|
};

/// Channels that s6_backward() takes at most, and numbers of state of theirs that it works on at a time: four recurrences hide
/// each other's latency, and the gradients that are summed over the state pass through memory once for all four.
inline constexpr Index kS6Widest = 64, kS6Tile = 4;
/// Lanes of the widest vector there is.
inline constexpr Index kMaxLanes = 16;
/// Elements of scratch of s6_backward(): five numbers of each token and channel, and for the vector and tile that are worked on,
/// the decays, what they keep, and the sums of the gradients of b and c.
constexpr Index s6_scratch(Index count, Index width) {
  constexpr Index page = 4096 / sizeof(float);
  return 5 * count * round_up(width, kBlock) + 4 * round_up(count * kS6Tile * kMaxLanes, page) + page;
}

template <class T>
struct S6Backward {
  Rows<const T> grad_o;       // may be null
  Rows<T> grad_x, grad_step;  // may be null
  Rows<T> grad_b, grad_c;     // [count,N], set to the sums over these channels
  T *back, *grad_a;           // [blocks,N,kBlock] gradients of the state, which moves on, and of a, which is set
  T* grad_d;                  // [blocks,kBlock], set
  T* scratch;                 // s6_scratch(count, width)
  Index chunk;                // tokens of the chunk before, whose rows are prefetched if there is one
};

/// Where a step reads the state [width,N] and where it leaves it: rows of N dense elements, the same memory or not.
template <class T>
struct S6Step {
  Rows<const T> a, from;  // a itself; the state before, which may be one row for all (stride 0)
  Rows<T> to;
  const T* d;  // [width] or null
};

template <class T, Isa I>
struct Kernels {
  /// The chunk's h, unless its rows are null; the state moves from `from` to `to`, which may be the same.
  static void forward(const Tokens<T>& x, const State<const T>& from, const State<T>& to, const ForwardRows<T>& out) noexcept;
  /// Gradients of the chunk; `back`, that of the state after it, becomes that of the state before.
  static void backward(const Tokens<T>& x, const State<const T>& before, const State<T>& back, const BackwardRows<T>& io,
                       T* scratch) noexcept;
  static void s6_forward(const S6Tokens<T>& x, const S6Block<T>& block, T* state, Rows<T> o) noexcept;
  static void s6_backward(const S6Tokens<T>& x, const S6Block<T>& block, const T* before, const S6Backward<T>& io) noexcept;
  /// Token after token, one pass over the state for each.
  static void s6_step(const S6Tokens<T>& x, const S6Step<T>& s, Rows<T> o) noexcept;
};

}  // namespace isomer::scan_detail
