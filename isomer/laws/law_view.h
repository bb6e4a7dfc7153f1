#pragma once
// A strided array of another's memory as laws take it: of at most four axes, with a type and a rank known at run time. It
// converts to the View<T, R> of a law's typed functions; whether it is read or written is said by where it stands.
#include "isomer/base/tensor_view.h"

namespace isomer {

struct LawView {
  static constexpr std::size_t kMostAxes = 4;

  void* data = nullptr;  // absent: none
  Type type = Type::f32;
  int rank = 0;
  std::array<Index, kMostAxes> shape{}, stride{};  // strides in elements, may be 0 or negative

  [[nodiscard]] bool present() const { return data != nullptr; }
  [[nodiscard]] std::vector<Index> dims() const { return {shape.begin(), shape.begin() + rank}; }
  template <class T, int R>
  operator View<T, R>() const {  // NOLINT(google-explicit-constructor): the point of it
    static_assert(std::size_t(R) <= kMostAxes);
    View<T, R> view;
    if (!present()) return view;
    ISOMER_ASSERT(rank == R && type == type_of<std::remove_const_t<T>>, "an array is viewed as what it is");
    view.data = static_cast<T*>(data);
    std::copy_n(shape.begin(), R, view.shape.begin());
    std::copy_n(stride.begin(), R, view.stride.begin());
    return view;
  }
};

template <class T, int R>
[[nodiscard]] LawView law_view(const View<T, R>& view) {
  LawView x{.data = const_cast<std::remove_const_t<T>*>(view.data), .type = type_of<std::remove_const_t<T>>, .rank = R};
  std::copy_n(view.shape.begin(), R, x.shape.begin());
  std::copy_n(view.stride.begin(), R, x.stride.begin());
  return x;
}
/// Of an array that has as many axes as a spec.
[[nodiscard]] inline LawView law_view(const TensorView& view) {
  ISOMER_ASSERT(view.rank <= int(LawView::kMostAxes), "no tensor of a law has more axes");
  LawView x{.data = const_cast<std::byte*>(view.data), .type = view.type, .rank = view.rank};
  std::copy_n(view.shape.begin(), view.rank, x.shape.begin());
  std::copy_n(view.stride.begin(), view.rank, x.stride.begin());
  return x;
}
[[nodiscard]] inline LawView law_view(const Tensor& tensor) { return law_view(view_of(tensor)); }

/// Arrays by name. Tensors convert: a call takes either.
struct NamedViews : TensorViews {
  NamedViews() = default;
  NamedViews(TensorViews views) : TensorViews(std::move(views)) {}        // NOLINT(google-explicit-constructor)
  NamedViews(const Tensors& tensors) : TensorViews(views_of(tensors)) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace isomer
