#pragma once
// A value on a tape: memory, and where its gradient goes.
#include <array>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

using Shape4 = std::array<Index, 4>;

namespace internal {
/// The memory that a value and its views share, and that of its gradient.
template <class T>
struct Slot {
  T* base = nullptr;        // of the value
  T* grad = nullptr;        // null until something is written to it
  Index size = 0;           // elements from base on
  Slot* whole = nullptr;    // a piece of split(): where its memory belongs
  View<T, 4> piece = {};    // and what of it is the piece
  bool wanted = false;      // does a gradient go on from here?
  bool written = false;     // has a gradient arrived?
  bool partial = false;     // gradients arrive for slices of it: they are added to zeros
  bool persistent = false;  // of a parameter: its memory is not the tape's
};
}  // namespace internal

/// A value on the tape, or a parameter. Copying copies the handle.
template <class T>
struct Var {
  View<T, 4> value;
  internal::Slot<T>* slot = nullptr;

  [[nodiscard]] bool present() const { return value.present(); }
  [[nodiscard]] const Shape4& shape() const { return value.shape; }
  [[nodiscard]] Index dim(int axis) const { return value.shape[std::size_t(axis)]; }
  /// Is a gradient to be computed for it?
  [[nodiscard]] bool wanted() const { return slot != nullptr && slot->wanted; }
};

/// Where an op's gradient goes: set what is there, or add to it. Absent when nobody wants it.
template <class T>
struct GradientTarget {
  View<T, 4> view = {};
  Accumulate mode = Accumulate::set;

  [[nodiscard]] bool present() const { return view.present(); }
};

}  // namespace isomer
