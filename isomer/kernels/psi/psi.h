#pragma once
// LUNA's ψ: every number becomes L numbers by small networks of one hidden layer of relu units, learned with everything else.
//
//   z_l(u) = Σ_j w2[l, j] relu(w1[l, j] u + b1[l, j]) + b2[l],   l < L;     y = z, or relu(z) + floor if `positive`
//
// w2 [L, J], b2 [1, L]; w1 and b1 are [L, J], a network for each output, or [1, J], one hidden layer for all.
//
//   const PsiTable<float> table = psi_table<float>(parameters, scratch);
//   psi<float>(table, options, u, y, context);                // u [B, T, H, m], y [B, T, H, m·L]: ψ_l of u_i at i·L + l
//
// Of one number, such a network is a broken line with at most J corners. The table holds it exactly: corners in order, and value
// and slope between them, computed in double. Values take a search and L products instead of J·L, gradients the same: those of
// all parameters follow from Σ dy and Σ dy·u between two corners. So the table serves training too; make it again when the
// parameters have changed. At a corner the slope is that of one of its sides.
// Any strides, a dense last axis fast; nothing overlaps. Sums run in double, in an order that the shape fixes.
#include "isomer/base/context.h"
#include "isomer/base/view.h"

namespace isomer {

template <class T>
struct PsiParameters {
  View<const T, 2> w1, b1, w2, b2;
};

struct PsiOptions {
  bool positive = true;
  double floor = 1e-6;
};

/// The corners of all networks together cut the line into segments, where every output is a straight line. Memory is that of the
/// workspace it was made in.
template <class T>
struct PsiTable {
  Index outputs = 0, units = 0;   // hidden units of all networks
  const T* corners = nullptr;     // [blocks · 8], in order; behind the last one +inf
  const T* block_ends = nullptr;  // [blocks, rounded up to a multiple of 8]: every eighth corner; behind the last one +inf
  const T* anchor = nullptr;      // [segments]: the number of the segment that is nearest to 0
  const T* value = nullptr;       // [segments, outputs]: z at the anchor
  const T* slope = nullptr;       // [segments, outputs]
  const Index* rank = nullptr;    // [units]: the place of a unit's corner in their order, or −1

  [[nodiscard]] Index segments() const { return units + 1; }
  /// Blocks of eight corners and one more, without any.
  [[nodiscard]] Index blocks() const { return units / 8 + 2; }
};

template <class T>
[[nodiscard]] PsiTable<T> psi_table(const PsiParameters<T>& parameters, Workspace& memory);

template <class T>
void psi(const PsiTable<T>& table, PsiOptions options, View<const T, 4> u, View<T, 4> y, Context& context);

/// What psi_vjp sets; absent views are not computed.
template <class T>
struct PsiGradients {
  View<T, 4> du = {};
  View<T, 2> dw1 = {}, db1 = {}, dw2 = {}, db2 = {};
};

template <class T>
void psi_vjp(const PsiTable<T>& table, const PsiParameters<T>& parameters, PsiOptions options, View<const T, 4> u,
             View<const T, 4> dy, const PsiGradients<T>& gradients, Context& context);

}  // namespace isomer
