#pragma once
// What the scheduler (delta_forward.cc, delta_backward.cc, delta_step.cc) hands to the kernels of one Isa (delta_*_impl.h): one
// chunk of one head as plain pointers, its matrices, and the scratch that the kernels need. Names as in README.md.
#include "isomer/base/cpu.h"
#include "isomer/laws/chunk_rows.h"

namespace isomer::delta_detail {

using chunk::kPad;
using chunk::PrefetchList;
using chunk::Rows;

enum class Gate { none, head, key };

/// The options, as the kernels see them.
struct Rule {
  Gate gate;
  bool low_rank;  // two writes a token, k vᵀ and b uᵀ, and a is the reader; else one, β k uᵀ, and −k reads
  bool l2norm;
  double scale;

  [[nodiscard]] ISOMER_INLINE Index writes() const { return low_rank ? 2 : 1; }
  /// Numbers of a token that its decay has.
  [[nodiscard]] ISOMER_INLINE Index gates(Index K) const { return gate == Gate::none ? 0 : gate == Gate::head ? 1 : K; }
};

/// C tokens of one head. V may be a part of the columns: they are independent but for finish().
template <class T>
struct Tokens : chunk::Tokens<T> {
  Rows<const T> a, b;
  Rows<const T> beta, log_decay;  // beta one element a row, log_decay rule.gates(K)
};

/// What a chunk does to any state, N = writes · C: u = v + x S + L z, o = q S + P z, S' = carry ∘ S + (w to the edge)ᵀ z.
template <class T>
struct Matrices {
  T *x, *q;                        // [C, K + N] readers from the state before the chunk, then L or P; rows of x and q alternate
  Index stride;                    // of both
  T* w;                            // [N, K] writers
  T* carry;                        // [K] decay of the state over the chunk
  T *up, *down;                    // [C, gates] decay of a reader from the beginning of its segment, and of a writer back to it
  T* entry;                        // [C, gates] decay of the token that begins a segment, which the state takes first
  T *norm_q, *norm_k, *beta;       // [C] 1/√(Σx² + eps), or 1
  T *scale_x, *scale_q, *scale_w;  // [C] factors of x, q and w that unscaled rows do not have; else 1
  Index* first;                    // [C + 1] where the segments begin, C at the end
  Index* segments;                 // [1] their number
  Index* from_edge;                // [1] 1: the first begins at the chunk's edge, with an entry of 1

  /// Is all one segment, from the chunk's edge on? Then w is meant before the carry.
  [[nodiscard]] ISOMER_INLINE bool whole() const { return *segments == 1 && *from_edge == 1; }
  /// From a row of x to the row of q behind it.
  [[nodiscard]] ISOMER_INLINE Index row() const { return stride / 2; }
};

/// Scratch of load() beside the matrices.
template <class T>
struct LoadScratch {
  T* wt;  // [K, N] writers, transposed
  Index stride;
  T* from;        // [K] decay from the chunk's edge
  T *sum, *rest;  // [K] prefix sum of log_decay and what rounding took from it
  T* before;      // [V] of forward(): what the first token of a segment read before its decay
};

/// What a tape keeps of a chunk for its backward pass: the state before it, transposed [V,K], and z [N,V]. Of some columns, rows
/// of the one and columns of the other; null: nothing is kept.
template <class T>
struct Kept {
  T* state_t;
  Rows<T> z;
};

/// Backward: all of a chunk, V columns.
template <class T>
struct BackwardScratch {
  T* grads;      // [2C,V] of u and of o, alternating, as x and q do in Matrices, and with the factors of unscaled rows
  T* grad_z;     // [N,V]
  T* keep;       // [N] factors of its rows
  T* own;        // [2,N] gradients of pairs that no gate stands between: of q with its own token's writes, of x with those before
  T* back;       // [K,V] gradient of the state after the chunk, at the writers
  T* back_t;     // [V,K] gradient of the state after the chunk, transposed
  T* z_t;        // [V,N]
  T* pairs;      // [2C,N] gradients of L and P, alternating
  Index stride;  // of both
  T* reads;      // [2C,K] gradients of readers, x and q alternating, at the beginning of their segment
  T* write;      // [N,K] gradients of writers, there
  T *seg_q, *seg_x, *seg_w;  // [C,K] [C,K] [N,K] readers and writers there, when there are segments
  T* gate_gradient;          // [K] gradient of the log decays of keys, token after token from the last
  T* row;                    // [2,K] gradients that nobody wants
};

/// A chunk's rows outside the scratch; any may be null.
template <class T>
struct BackwardRows {
  Rows<const T> grad_o;
  Rows<T> q, k, v, a, b, beta, log_decay;
  PrefetchList<T> ahead;
};

/// Where a step reads the state [K,V] and where it leaves it: rows of V dense elements, the same memory or not.
template <class T>
struct StepState {
  Rows<const T> from;
  Rows<T> to;
  T *q, *x, *keep, *k, *b;  // scratch [K]
};

/// The kernels; defined in delta_{load,walk,backward,step}_impl.h, instantiated once for each Isa.
template <class T, Isa I>
struct Kernels {
  /// The matrices of a chunk: they need no state.
  static void load(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s) noexcept;
  /// A few tokens at a time: o, unless it is null, and the state [K,V] after the chunk in place of the one before.
  static void forward(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, T* state,
                      const Kept<T>& kept, Rows<T> o, const PrefetchList<T>& ahead) noexcept;
  /// After load(): gradients of z and u from those of o and of the state after the chunk, `back`, which becomes that of the state
  /// before it.
  static void retreat(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const BackwardScratch<T>& b,
                      Rows<const T> grad_o, T* back) noexcept;
  /// Gradients of the inputs. sz: as forward() kept it. `back` is the gradient of the state after the chunk; b has those of o, u
  /// and z.
  static void finish(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz,
                     const T* back, const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept;
  /// All of these.
  static void backward(const Tokens<T>& x, const Rule& rule, const Matrices<T>& m, const LoadScratch<T>& s, const T* sz, T* back,
                       const BackwardScratch<T>& b, const BackwardRows<T>& io) noexcept;
  /// Token after token of one head, one pass over the state for each.
  static void step(const Tokens<T>& x, const Rule& rule, const StepState<T>& s, Rows<T> o) noexcept;
};

}  // namespace isomer::delta_detail
