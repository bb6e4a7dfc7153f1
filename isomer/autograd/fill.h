#pragma once
// For ops whose backward kernel sets the gradients of several inputs in one call, where inputs may have been repeated over
// sequences, tokens or heads.
//
//   GradientWriter<T> write(back);
//   const RotaryGradients<T> grad{.dx = write(x), .dangle = write(angles)};   // angles: a Broadcast
//   rotary_vjp<T>(x.value, back.arrived(y), angles.value(), grad, back.context());
//   write.finish();                             // adds what could not be written in place
#include "isomer/autograd/tape.h"

namespace isomer {

/// x as if it had that shape: axes of size 1 are repeated, others stay as they are. So does an absent view.
template <class T>
[[nodiscard]] View<T, 4> broadcast(View<T, 4> x, const Shape4& shape) {
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
struct Broadcast {
  Var<T> var;
  Shape4 shape;

  [[nodiscard]] View<const T, 4> value() const { return broadcast(var.value, shape); }
};

/// Where a kernel may set gradients, whatever arrived before. Holds the context's scratch until it is destroyed.
template <class T>
class GradientWriter {
 public:
  explicit GradientWriter(Tape<T>& tape) : tape_(tape), scope_(tape.context().workspace()) {}

  /// The gradient of an input that the forward pass had broadcast to `shape`. Absent when nobody wants it.
  [[nodiscard]] View<T, 4> operator()(Var<T> input, const Shape4& shape);
  [[nodiscard]] View<T, 4> operator()(Var<T> input) { return (*this)(input, input.shape()); }
  [[nodiscard]] View<T, 4> operator()(const Broadcast<T>& input) { return (*this)(input.var, input.shape); }
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

extern template class GradientWriter<float>;
extern template class GradientWriter<double>;

}  // namespace isomer
