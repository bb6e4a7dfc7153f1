#include "isomer/base/tensor.h"

#include <cstring>

#include "isomer/base/tensor_view.h"

namespace isomer {

Tensor Tensor::clone() const {
  Tensor copy(type_, shape_);
  std::memcpy(copy.bytes(), bytes(), std::size_t(size() * bytes_of(type_)));
  return copy;
}

Tensor Tensor::cast(Type type) const {
  ISOMER_ASSERT(floating(type_) && floating(type), "only floating tensors are cast");
  Tensor to(type, shape_);
  // As one row: a tensor may have more axes than a view.
  copy_numbers(dense_view(type_, bytes(), {size()}), {type, to.bytes(), 1, {size()}, {1}});
  return to;
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
