#include "isomer/kernels/optimiser/optimiser.h"

#include <cmath>

#include "isomer/kernels/optimiser/optimiser_kernels.h"

namespace isomer {

template <class T>
void adamw(const UpdateArrays<T>& arrays, const AdamwStep& step, Isa isa) {
  const AdamwCoefficients<T> c{.beta1 = T(step.beta1),
                               .rest1 = T(1 - step.beta1),
                               .beta2 = T(step.beta2),
                               .rest2 = T(1 - step.beta2),
                               .gradient_scale = T(step.gradient_scale),
                               .root = T(1 / std::sqrt(step.correction2)),
                               .eps = T(step.eps),
                               .keep = T(1 - step.lr * step.decay),
                               .rate = T(step.lr / step.correction1)};
  with_isa(isa, [&]<Isa I>() { OptimiserKernels<T, I>::adamw(arrays, c); });
}

template <class T>
void sgd(const UpdateArrays<T>& arrays, const SgdStep& step, Isa isa) {
  const SgdCoefficients<T> c{.momentum = T(step.momentum),
                             .gradient_scale = T(step.gradient_scale),
                             .keep = T(1 - step.lr * step.decay),
                             .rate = T(step.lr)};
  with_isa(isa, [&]<Isa I>() { OptimiserKernels<T, I>::sgd(arrays, c); });
}

template <class T>
double sum_of_squares(const T* x, Index size, Isa isa) {
  return with_isa(isa, [&]<Isa I>() { return OptimiserKernels<T, I>::sum_of_squares(x, size); });
}

template void adamw(const UpdateArrays<float>&, const AdamwStep&, Isa);
template void adamw(const UpdateArrays<double>&, const AdamwStep&, Isa);
template void sgd(const UpdateArrays<float>&, const SgdStep&, Isa);
template void sgd(const UpdateArrays<double>&, const SgdStep&, Isa);
template double sum_of_squares(const float*, Index, Isa);
template double sum_of_squares(const double*, Index, Isa);

}  // namespace isomer
