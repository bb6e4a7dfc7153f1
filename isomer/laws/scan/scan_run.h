#pragma once
// The schedules of scan. Arguments have been checked, and rows are dense.
#include "isomer/laws/scan/scan.h"
#include "isomer/laws/scan/scan_cut.h"

namespace isomer::scan_detail {

template <class T>
[[nodiscard]] Cut cut_for(const ScanInputs<T>& in, Index chunk);
/// What Form::automatic takes: of the plain scan, and of S6. A tape holds the edges of chunks, not of steps.
[[nodiscard]] Choice choose();
[[nodiscard]] Choice choose_s6(Index T, bool taped);
/// Elements of a tape.
template <class T>
[[nodiscard]] Index tape_size(const ScanInputs<T>& in, const Cut& cut) {
  return cut.edges() * cut.channels * (in.complex() ? 2 : 1);
}
/// `edges`: where to keep the state at every edge, or null.
template <class T>
void forward(const ScanInputs<T>& in, const Cut& cut, const ScanOutputs<T>& out, T* edges, Context& context);
/// `edges`: as forward() left them.
template <class T>
void backward(const ScanInputs<T>& in, const Cut& cut, const T* edges, const ScanCotangents<T>& given,
              const ScanGradients<T>& grad, Context& context);

template <class T>
[[nodiscard]] Cut cut_for(const ScanS6Inputs<T>& in, Index chunk);
template <class T>
[[nodiscard]] Index tape_size(const ScanS6Inputs<T>& in, const Cut& cut) {
  return cut.edges() * round_up(cut.channels, kBlock) * in.a.shape[1];
}
template <class T>
void forward(const ScanS6Inputs<T>& in, const Cut& cut, const ScanS6Outputs<T>& out, T* edges, Context& context);
template <class T>
void backward(const ScanS6Inputs<T>& in, const Cut& cut, const T* edges, const ScanS6Cotangents<T>& given,
              const ScanS6Gradients<T>& grad, Context& context);
/// Token after token, in place where the states are dense.
template <class T>
void step(const ScanS6Inputs<T>& in, const Cut& cut, const ScanS6Outputs<T>& out, Context& context);

}  // namespace isomer::scan_detail
