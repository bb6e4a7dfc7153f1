#pragma once
// A value on a tape: memory, and where its gradient goes.
#include <array>
#include <cstddef>
#include <type_traits>

#include "isomer/base/context.h"
#include "isomer/base/type.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/gemm/gemm.h"

namespace isomer {

using Shape4 = std::array<Index, 4>;

[[nodiscard]] inline Index size_of(const Shape4& shape) { return shape[0] * shape[1] * shape[2] * shape[3]; }

/// The row-major view of `data`.
template <class T>
[[nodiscard]] View<T, 4> contiguous(T* data, const Shape4& shape) {
  return contiguous(data, {shape[0], shape[1], shape[2], shape[3]});
}

/// The shape of what is computed from both, element by element: an axis of size 1 is repeated, even no times.
[[nodiscard]] inline Shape4 broadcast(Shape4 a, const Shape4& b) {
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (a[axis] == 1) a[axis] = b[axis];
  return a;
}

namespace internal {
/// The memory that a value and its views share, and that of its gradient.
template <class T>
struct Slot {
  T* base = nullptr;              // of the value
  T* grad = nullptr;              // null until something is written to it
  Index size = 0;                 // elements from base on
  Slot* whole = nullptr;          // a piece of split(): where its memory belongs
  View<T, 4> piece = {};          // and what of it is the piece
  bool wanted = false;            // does a gradient go on from here?
  bool written = false;           // has a gradient arrived?
  bool partial = false;           // gradients arrive for slices of it: they are added to zeros
  bool persistent = false;        // of a parameter: its memory is not the tape's
  std::byte* stored = nullptr;    // of a parameter that is kept in another type than T: all of it, dense; base is null then
  Type type = type_of<T>;         // and that type
  RowsOfA rows = RowsOfA::exact;  // what products do with what they multiply it with
};
}  // namespace internal

/// A value on the tape, or a parameter. Copying copies the handle.
template <class T>
struct Var {
  View<T, 4> value;
  internal::Slot<T>* slot = nullptr;

  [[nodiscard]] bool present() const { return value.present() || stored(); }
  /// Is it a parameter that is kept in another type than T? Then `value` has a shape and no numbers, and only what reads weights
  /// takes it: linear.h, embedding.h.
  [[nodiscard]] bool stored() const { return slot != nullptr && slot->stored != nullptr; }
  /// Calls f with the numbers in the type that they are stored in: T or, for float, Bf16 or F16.
  template <class F>
  void with_numbers(F&& f) const {
    if constexpr (std::is_same_v<T, float>) {
      if (stored() && slot->type == Type::bf16) return f(as<Bf16>());
      if (stored()) return f(as<F16>());
    }
    f(View<const T, 4>(value));
  }
  [[nodiscard]] const Shape4& shape() const { return value.shape; }
  [[nodiscard]] Index dim(int axis) const { return value.shape[std::size_t(axis)]; }
  /// Is a gradient to be computed for it?
  [[nodiscard]] bool wanted() const { return slot != nullptr && slot->wanted; }

 private:
  template <class W>
  [[nodiscard]] View<const W, 4> as() const {
    return {reinterpret_cast<const W*>(slot->stored), value.shape, value.stride};
  }
};

/// Where an op's gradient goes: set what is there, or add to it. Absent when nobody wants it.
template <class T>
struct GradientTarget {
  View<T, 4> view = {};
  Accumulate mode = Accumulate::set;

  [[nodiscard]] bool present() const { return view.present(); }
};

}  // namespace isomer
