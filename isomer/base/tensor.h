#pragma once
// An owned, row-major array of a Type with a run-time shape: what files hold and tools pass around.
// Kernels take views; get one with view<T, R>(). To look at numbers that someone else owns, use a TensorView (tensor_view.h).
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/buffer.h"
#include "isomer/base/error.h"
#include "isomer/base/type.h"
#include "isomer/base/view.h"

namespace isomer {

class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised.
  Tensor(Type type, std::vector<Index> shape) : type_(type), shape_(std::move(shape)), bytes_(size() * bytes_of(type)) {}

  [[nodiscard]] Type type() const { return type_; }
  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] Index size() const {
    Index n = 1;
    for (Index s : shape_) n *= s;
    return n;
  }
  [[nodiscard]] std::byte* bytes() const { return bytes_.data(); }

  /// T must be the type of the tensor.
  template <class T>
  [[nodiscard]] T* data() const {
    ISOMER_ASSERT(type_of<T> == type_, "a tensor is read as the type it has");
    return reinterpret_cast<T*>(bytes_.data());
  }
  template <class T, int R>
  [[nodiscard]] View<T, R> view() const {
    ISOMER_ASSERT(shape_.size() == std::size_t(R), "a tensor is viewed with the rank it has");
    View<T, R> view;
    view.data = data<std::remove_const_t<T>>();
    Index stride = 1;
    for (int axis = R - 1; axis >= 0; --axis) {
      view.shape[axis] = shape_[axis];
      view.stride[axis] = stride;
      stride *= shape_[axis];
    }
    return view;
  }

  [[nodiscard]] Tensor clone() const;
  /// The same numbers in another floating type, rounded to the nearest and then to even.
  [[nodiscard]] Tensor cast(Type type) const;

 private:
  Type type_ = Type::f32;
  std::vector<Index> shape_;
  Buffer<std::byte> bytes_;
};

/// Tensors by name, as in a safetensors file.
using Tensors = std::map<std::string, Tensor, std::less<>>;

/// The tensor of that name; throws Error when it is not there or has another type or shape.
[[nodiscard]] const Tensor& expect_tensor(const Tensors& all, const std::string& name, Type type,
                                          const std::vector<Index>& shape);
/// "[2, 3]"
[[nodiscard]] std::string text_of(const std::vector<Index>& shape);

}  // namespace isomer
