#pragma once
// For ops whose backward kernel sets the gradients of several inputs in one call, where inputs may have been repeated over
// sequences, tokens or heads.
//
//   Filling<T> fill(back);
//   law_vjp(…, {.q = fill(q), .log_decay = flat(fill(f, shape))}, back.context());
//   fill.finish();                             // adds what could not be written in place
#include "isomer/autograd/tape.h"

namespace isomer {

/// x as if it had that shape: axes of size 1 are repeated, others stay as they are. So does an absent view.
template <class T>
[[nodiscard]] View<T, 4> spread(View<T, 4> x, const Shape4& shape) {
  if (!x.present()) return x;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (x.shape[axis] != 1 || shape[axis] == 1) continue;
    x.shape[axis] = shape[axis];
    x.stride[axis] = 0;
  }
  return x;
}

/// An input as a kernel reads it, and the shape in which its gradient comes back.
template <class T>
struct Spread {
  Var<T> var;
  Shape4 shape;

  [[nodiscard]] View<const T, 4> value() const { return spread(var.value, shape); }
};

/// Where a kernel may set gradients, whatever arrived before. Holds the context's scratch until it is destroyed.
template <class T>
class Filling {
 public:
  explicit Filling(Tape<T>& tape) : tape_(tape), scope_(tape.context().workspace()) {}

  /// The gradient of an input that the forward pass had spread to `shape`. Absent when nobody wants it.
  [[nodiscard]] View<T, 4> operator()(Var<T> input, const Shape4& shape);
  [[nodiscard]] View<T, 4> operator()(Var<T> input) { return (*this)(input, input.shape()); }
  [[nodiscard]] View<T, 4> operator()(const Spread<T>& input) { return (*this)(input.var, input.shape); }
  /// Call it once, after the kernel.
  void finish();

 private:
  struct Part {
    View<const T, 4> part;
    GradientTarget<T> into;
  };
  static constexpr std::size_t kParts = 16;

  Tape<T>& tape_;
  Workspace::Scope scope_;
  std::array<Part, kParts> parts_;
  std::size_t count_ = 0;
};

extern template class Filling<float>;
extern template class Filling<double>;

}  // namespace isomer
