#pragma once
// x + a · b as one op (kernels/elementwise/add_product.h); axes of size 1 are repeated.
#include "isomer/autograd/tape.h"

namespace isomer {

template <class T>
[[nodiscard]] Var<T> add_product(Tape<T>& tape, Var<T> x, Var<T> a, Var<T> b);

}  // namespace isomer
