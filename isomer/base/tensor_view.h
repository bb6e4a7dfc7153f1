#pragma once
// A strided, non-owning view of an array whose type and rank are known at run time only: what named calls take, so that nobody
// has to copy numbers into a Tensor first. Inside kernels use View<T, R>; get one with view<T, R>().
//
//   TensorView q = view_of(tensor);
//   TensorView k{.type = Type::f32, .data = pointer, .rank = 3, .shape = {B, T, K}, .stride = {T * K, K, 1}};
//   View<const float, 3> numbers = k.view<const float, 3>();
//
// A default-made view is absent. Copying a view copies no numbers; whoever owns them must outlive it.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "isomer/base/tensor.h"

namespace isomer {

/// Byte is std::byte or const std::byte.
template <class Byte>
struct BasicTensorView {
  static constexpr int kMostAxes = 8;

  Type type = Type::f32;
  Byte* data = nullptr;
  int rank = 0;
  std::array<Index, kMostAxes> shape{};
  std::array<Index, kMostAxes> stride{};  // in elements, may be 0 or negative

  [[nodiscard]] bool present() const { return data != nullptr; }
  [[nodiscard]] Index size() const {
    Index n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= shape[std::size_t(axis)];
    return n;
  }
  [[nodiscard]] std::vector<Index> dims() const { return {shape.begin(), shape.begin() + rank}; }

  /// T must be the type of the view, and R its rank.
  template <class T, int R>
  [[nodiscard]] View<T, R> view() const {
    static_assert(std::is_const_v<T> || !std::is_const_v<Byte>, "numbers that are only read are viewed as const");
    ISOMER_ASSERT(type_of<std::remove_const_t<T>> == type && rank == R, "a tensor is viewed with the type and rank it has");
    View<T, R> view{reinterpret_cast<T*>(data), {}, {}};
    std::copy_n(shape.begin(), R, view.shape.begin());
    std::copy_n(stride.begin(), R, view.stride.begin());
    return view;
  }

  operator BasicTensorView<const std::byte>() const  // NOLINT(google-explicit-constructor): a view of more rights is one of fewer
      requires(!std::is_const_v<Byte>) {
    return {type, data, rank, shape, stride};
  }
};

using TensorView = BasicTensorView<const std::byte>;
using MutableTensorView = BasicTensorView<std::byte>;

/// Views by name, as what a mapped file holds.
using TensorViews = std::map<std::string, TensorView, std::less<>>;

/// The row-major view of `data`. Throws Error for more axes than a view has.
[[nodiscard]] TensorView dense_view(Type type, const std::byte* data, const std::vector<Index>& shape);
[[nodiscard]] TensorView view_of(const Tensor& tensor);
[[nodiscard]] MutableTensorView mutable_view_of(Tensor& tensor);
[[nodiscard]] TensorViews views_of(const Tensors& tensors);

/// Copies numbers into an array of the same shape, and converts them: from one floating type to another, rounded to the nearest
/// and then to even; I64 only into I64. The arrays do not overlap.
void copy_numbers(const TensorView& from, const MutableTensorView& to);

}  // namespace isomer
