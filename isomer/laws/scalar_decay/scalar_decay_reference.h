#pragma once
// The definition of scalar_decay in double, token by token. Arguments have been checked by scalar_decay.cc.
#include "isomer/laws/scalar_decay/scalar_decay.h"

namespace isomer::scalar_decay_detail {

/// final_max of a sequence that has seen nothing: so low that whatever comes is larger, and finite so that it can be handed back
/// in.
inline constexpr double kNothing = -1e30;

template <class T>
void reference(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, const ScalarDecayOutputs<T>& out);
template <class T>
void reference_vjp(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, const ScalarDecayCotangents<T>& given,
                   const ScalarDecayGradients<T>& grad);

}  // namespace isomer::scalar_decay_detail
