#include "isomer/autograd/fill.h"

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

template <class T>
View<T, 4> GradientWriter<T>::operator()(Var<T> input, const Shape4& shape) {
  const GradientTarget<T> into = tape_.target(input);
  if (!into.present()) return {};
  if (into.mode == Accumulate::set && input.shape() == shape) return into.view;
  ISOMER_ASSERT(count_ < kParts, "a kernel sets a few gradients at once");
  const View<T, 4> part = contiguous(tape_.context().workspace().template take<T>(size_of(shape)), shape);
  parts_[count_++] = {part, into};
  return part;
}

template <class T>
void GradientWriter<T>::finish() {
  for (std::size_t i = 0; i < count_; ++i)
    sum_to<T>({.x = parts_[i].part}, parts_[i].into.view, parts_[i].into.mode, tape_.context());
  count_ = 0;
}

template class GradientWriter<float>;
template class GradientWriter<double>;

}  // namespace isomer
