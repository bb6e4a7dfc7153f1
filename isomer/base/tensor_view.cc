#include "isomer/base/tensor_view.h"

#include <bit>
#include <cmath>

namespace isomer {

namespace {
/// A float on the way to a narrower type: the one nearest to x towards zero, with an odd last bit unless it is x. Rounded once
/// more it becomes what x itself is rounded to; the nearest float would not, where it is a tie and x is none.
float to_odd(double x) {
  const auto near = float(x);
  if (double(near) == x || std::isnan(x)) return near;
  auto bits = std::bit_cast<std::uint32_t>(near);
  if (std::fabs(double(near)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

template <class From>
float narrowed(From x) {
  if constexpr (std::is_same_v<From, double>)
    return to_odd(x);
  else if constexpr (std::is_same_v<From, float>)
    return x;
  else
    return to_float(x);
}

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (std::is_same_v<To, Bf16>)
    return to_bf16(narrowed(x));
  else if constexpr (std::is_same_v<To, F16>)
    return to_f16(narrowed(x));
  else if constexpr (std::is_same_v<From, Bf16> || std::is_same_v<From, F16>)
    return To(to_float(x));
  else
    return To(x);
}

/// f.operator()<T>() with the floating type T.
template <class F>
void with_floating(Type type, F&& f) {
  switch (type) {
    case Type::f32: return f.template operator()<float>();
    case Type::f64: return f.template operator()<double>();
    case Type::bf16: return f.template operator()<Bf16>();
    default: return f.template operator()<F16>();
  }
}

/// A run of numbers as far as strides allow, on both sides.
template <class From, class To>
struct Row {
  const From* from;
  To* to;
  Index size, from_stride, to_stride;

  void copy() const {
    if (from_stride == 1 && to_stride == 1)
      std::transform(from, from + size, to, converted<To, From>);
    else
      for (Index i = 0; i < size; ++i) to[i * to_stride] = converted<To, From>(from[i * from_stride]);
  }
};

template <class From, class To>
void copy_axes(const TensorView& from, const MutableTensorView& to, int axis, const From* source, To* target) {
  const auto n = std::size_t(axis);
  if (axis == from.rank) return Row<From, To>{source, target, 1, 1, 1}.copy();
  if (axis == from.rank - 1) return Row<From, To>{source, target, from.shape[n], from.stride[n], to.stride[n]}.copy();
  for (Index i = 0; i < from.shape[n]; ++i) copy_axes(from, to, axis + 1, source + i * from.stride[n], target + i * to.stride[n]);
}

bool dense(const auto& view) {
  Index expected = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    const auto n = std::size_t(axis);
    if (view.shape[n] != 1 && view.stride[n] != expected) return false;
    expected *= view.shape[n];
  }
  return true;
}

template <class From, class To>
void copy_as(const TensorView& from, const MutableTensorView& to) {
  const auto* source = reinterpret_cast<const From*>(from.data);
  auto* target = reinterpret_cast<To*>(to.data);
  if (dense(from) && dense(to)) return Row<From, To>{source, target, from.size(), 1, 1}.copy();
  copy_axes(from, to, 0, source, target);
}
}  // namespace

TensorView dense_view(Type type, const std::byte* data, const std::vector<Index>& shape) {
  require(shape.size() <= std::size_t(TensorView::kMostAxes), "tensors", "expected at most ", TensorView::kMostAxes,
          " axes, got ", text_of(shape));
  TensorView view{.type = type, .data = data, .rank = int(shape.size()), .shape = {}, .stride = {}};
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  Index stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) view.stride[axis] = stride;
  return view;
}

TensorView view_of(const Tensor& tensor) { return dense_view(tensor.type(), tensor.bytes(), tensor.shape()); }

MutableTensorView mutable_view_of(Tensor& tensor) {
  const TensorView view = view_of(tensor);
  return {.type = view.type, .data = tensor.bytes(), .rank = view.rank, .shape = view.shape, .stride = view.stride};
}

TensorViews views_of(const Tensors& tensors) {
  TensorViews views;
  for (const auto& [name, tensor] : tensors) views.emplace(name, view_of(tensor));
  return views;
}

void copy_numbers(const TensorView& from, const MutableTensorView& to) {
  ISOMER_ASSERT(from.dims() == to.dims(), "numbers are copied into an array of the same shape");
  ISOMER_ASSERT(floating(from.type) == floating(to.type), "only floating numbers are converted");
  if (!floating(from.type)) return copy_as<std::int64_t, std::int64_t>(from, to);
  with_floating(from.type, [&]<class From>() { with_floating(to.type, [&]<class To>() { copy_as<From, To>(from, to); }); });
}

}  // namespace isomer
