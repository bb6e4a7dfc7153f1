#pragma once
// A strided, non-owning view of an array: a pointer, a shape, a stride for each axis (in elements, may be 0 or negative).
// A default-made view is "absent": optional arguments are absent views. Copying a view copies no data.
//
//   View<float, 4> q = contiguous(buffer.data(), {B, T, H, K});
//   q(b, t, h, 3) = 1.0f;
#include <array>
#include <type_traits>

#include "isomer/base/index.h"

namespace isomer {

template <class T, int R>
struct View {
  T* data = nullptr;
  std::array<Index, R> shape{};
  std::array<Index, R> stride{};

  [[nodiscard]] bool present() const { return data != nullptr; }

  /// The address of an element; trailing indices left out count as 0.
  template <class... I>
  [[nodiscard]] T* at(I... index) const {
    static_assert(sizeof...(I) <= R);
    const std::array<Index, sizeof...(I)> i{Index(index)...};
    T* p = data;
    for (std::size_t axis = 0; axis < i.size(); ++axis) p += i[axis] * stride[axis];
    return p;
  }
  template <class... I>
  [[nodiscard]] T& operator()(I... index) const {
    static_assert(sizeof...(I) == R);
    return *at(index...);
  }

  [[nodiscard]] Index size() const {
    Index n = 1;
    for (Index s : shape) n *= s;
    return n;
  }
  [[nodiscard]] bool contiguous() const {
    Index expected = 1;
    for (int axis = R - 1; axis >= 0; --axis) {
      if (shape[axis] != 1 && stride[axis] != expected) return false;
      expected *= shape[axis];
    }
    return true;
  }

  operator View<const T, R>() const  // NOLINT(google-explicit-constructor): a view of more rights is a view of fewer
      requires(!std::is_const_v<T>) {
    return {data, shape, stride};
  }
};

/// Elements [begin, begin + length) of one axis.
template <class T, int R>
[[nodiscard]] View<T, R> slice(View<T, R> view, int axis, Index begin, Index length) {
  if (view.present()) view.data += begin * view.stride[axis];
  view.shape[axis] = length;
  return view;
}

/// The row-major view of `data`.
template <class T, std::size_t R>
[[nodiscard]] View<T, int(R)> contiguous(T* data, const Index (&shape)[R]) {
  View<T, int(R)> view;
  view.data = data;
  Index stride = 1;
  for (int axis = int(R) - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = stride;
    stride *= shape[axis];
  }
  return view;
}

}  // namespace isomer
