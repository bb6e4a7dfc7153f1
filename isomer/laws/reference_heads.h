#pragma once
// What the references of the laws with grouped heads share: one head of one sequence as dense vectors in double, and gradients
// back into tensors whose heads are shared. For *_reference.cc; never optimised.
#include <algorithm>
#include <vector>

#include "isomer/laws/layout.h"

namespace isomer::reference_heads {

using Vector = std::vector<double>;

/// f(sequence, its number, head, heads) for every head of every sequence.
template <class Inputs, class F>
void each_head(const char* op, const Inputs& in, F f) {
  const auto all = sequences(op, in.q.shape[0], in.q.shape[1], in.offsets);
  const Index H = std::max({in.q.shape[2], in.k.shape[2], in.v.shape[2]});
  for (std::size_t n = 0; n < all.size(); ++n)
    for (Index h = 0; h < H; ++h) f(all[n], Index(n), h, H);
}

/// The rows [length, D] that head h of H reads; nothing of an absent tensor.
template <class T>
Vector rows_of(const View<const T, 4>& x, const Sequence& seq, Index h, Index H) {
  if (!x.present()) return {};
  const Index D = x.shape[3];
  Vector rows(seq.length * D);
  for (Index i = 0; i < seq.length * D; ++i) rows[i] = x(seq.batch, seq.first + i / D, group_of(h, H, x.shape[2]), i % D);
  return rows;
}

/// The gradient [length, V] of a head's outputs; zeros if there is none.
template <class T>
Vector output_gradient(const View<const T, 4>& grad_o, const Sequence& seq, Index h, Index H, Index V) {
  Vector rows = rows_of(grad_o, seq, h, H);
  rows.resize(seq.length * V, 0.0);
  return rows;
}

/// The state [K, V] of head h of sequence n, zeros if there is none, and back.
template <class T>
Vector state_of(const View<const T, 4>& from, Index n, Index h, Index K, Index V) {
  Vector state(K * V, 0.0);
  for (Index i = 0; i < K * V && from.present(); ++i) state[i] = from(n, h, i / V, i % V);
  return state;
}
template <class T>
void put_state(const Vector& state, const View<T, 4>& to, Index n, Index h, Index V) {
  for (std::size_t i = 0; i < state.size() && to.present(); ++i) to(n, h, Index(i) / V, Index(i) % V) = T(state[i]);
}

/// The gradient of a tensor with G heads: the sum over the heads that read each of them.
template <class T>
class GroupedGradient {
 public:
  explicit GroupedGradient(const View<const T, 4>& tensor) : shape_(tensor.shape), sums_(tensor.size(), 0.0) {}

  /// The rows [length, D] of head h of H.
  void add(const Vector& rows, const Sequence& seq, Index h, Index H) {
    const Index G = shape_[2], D = shape_[3];
    for (std::size_t i = 0; i < rows.size(); ++i)
      sums_[((seq.batch * shape_[1] + seq.first + Index(i) / D) * G + group_of(h, H, G)) * D + Index(i) % D] += rows[i];
  }
  void put(const View<T, 4>& to) const {
    const auto& s = shape_;
    for (Index i = 0; to.present() && i < to.size(); ++i)
      to(i / (s[3] * s[2] * s[1]), i / (s[3] * s[2]) % s[1], i / s[3] % s[2], i % s[3]) = T(sums_[i]);
  }

 private:
  std::array<Index, 4> shape_;
  Vector sums_;
};

}  // namespace isomer::reference_heads
