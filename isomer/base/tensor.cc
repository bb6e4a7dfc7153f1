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

}  // namespace isomer
