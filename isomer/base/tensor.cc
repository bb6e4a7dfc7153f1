#include "isomer/base/tensor.h"

#include <algorithm>
#include <cstring>

namespace isomer {

namespace {
template <class To, class From>
Tensor converted(const Tensor& from, Type type) {
  Tensor to(type, from.shape());
  std::transform(from.data<From>(), from.data<From>() + from.size(), to.data<To>(), [](From x) { return To(x); });
  return to;
}
}  // namespace

Tensor Tensor::clone() const {
  Tensor copy(type_, shape_);
  std::memcpy(copy.bytes(), bytes(), std::size_t(size() * bytes_of(type_)));
  return copy;
}

Tensor Tensor::cast(Type type) const {
  ISOMER_ASSERT(floating(type_) && floating(type), "only floating tensors are cast");
  if (type == type_) return clone();
  return type == Type::f64 ? converted<double, float>(*this, type) : converted<float, double>(*this, type);
}

std::string text_of(const std::vector<Index>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

const Tensor& expect_tensor(const Tensors& all, const std::string& name, Type type, const std::vector<Index>& shape) {
  const auto found = all.find(name);
  require(found != all.end(), "tensors", "expected ", name, " ", text_of(shape), ", found none");
  const Tensor& tensor = found->second;
  require(tensor.type() == type, "tensors", "expected ", name, " as ", name_of(type), ", got ", name_of(tensor.type()));
  require(tensor.shape() == shape, "tensors", "expected ", name, " ", text_of(shape), ", got ", text_of(tensor.shape()));
  return tensor;
}

}  // namespace isomer
