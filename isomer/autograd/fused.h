#pragma once
// Several elementwise steps as one op (kernels/elementwise/fused.h): what lies between inputs and outputs is not kept, but
// computed again on the way back.
#include <span>

#include "isomer/autograd/tape.h"
#include "isomer/kernels/elementwise/fused.h"

namespace isomer::ops {

/// The plan's outputs, in the common shape of the inputs: new values where `outputs` has none, else parts of new values that
/// nothing else has written to. What the plan points to must live as long as the tape's values.
template <class T>
void fused(Tape<T>& tape, const Fused& plan, std::span<const Var<T>> inputs, std::span<Var<T>> outputs);

}  // namespace isomer::ops
