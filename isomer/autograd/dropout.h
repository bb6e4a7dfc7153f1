#pragma once
// Dropout as an op (kernels/dropout): the mask is made again in the backward pass, nothing is stored.
#include "isomer/autograd/tape.h"
#include "isomer/kernels/dropout/dropout.h"

namespace isomer::ops {

/// With a rate of 0 it is x itself. Give every call of a step its own stream.
template <class T>
[[nodiscard]] Var<T> dropout(Tape<T>& tape, Var<T> x, const DropoutOptions& options);

}  // namespace isomer::ops
