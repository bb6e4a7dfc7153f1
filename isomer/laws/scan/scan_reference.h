#pragma once
// The definition of scan in double, token by token. Arguments have been checked by scan.cc and scan_s6.cc.
#include "isomer/laws/scan/scan.h"

namespace isomer::scan_detail {

template <class T>
void reference(const ScanInputs<T>& in, const ScanOutputs<T>& out);
template <class T>
void reference_vjp(const ScanInputs<T>& in, const ScanCotangents<T>& given, const ScanGradients<T>& grad);

template <class T>
void reference(const ScanS6Inputs<T>& in, const ScanS6Outputs<T>& out);
template <class T>
void reference_vjp(const ScanS6Inputs<T>& in, const ScanS6Cotangents<T>& given, const ScanS6Gradients<T>& grad);

}  // namespace isomer::scan_detail
