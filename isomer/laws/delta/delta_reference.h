#pragma once
// The definition of delta in double, token by token. Arguments have been checked by delta.cc.
#include "isomer/laws/delta/delta.h"

namespace isomer::delta_detail {

/// Under the root of Options::l2norm.
inline constexpr double kNormEps = 1e-6;

template <class T>
void reference(const DeltaInputs<T>& in, const DeltaOptions& options, const DeltaOutputs<T>& out);
template <class T>
void reference_vjp(const DeltaInputs<T>& in, const DeltaOptions& options, const DeltaCotangents<T>& given,
                   const DeltaGradients<T>& grad);

}  // namespace isomer::delta_detail
