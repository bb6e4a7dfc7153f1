#pragma once
// Any law as an op: inputs are values by their places in the law's inputs (laws/values.h says how they are read and repeated),
// and the gradient of what was repeated is the sum.
//
//   const auto bound = find_law("delta").bind({{"l2norm", "true"}});
//   const auto in = ops::law_vars<float>(bound->law(), {{"q", q}, {"k", k}, {"v", v}, {"beta", beta}});
//   Var<float> o = ops::law(tape, *bound, in);
//
// States come and go in one of three ways: not at all; as memory that is overwritten, for streams, which gradients take for
// constants; or as values, with gradients: initial ones are inputs like others, final ones are made where `finals` asks for them.
#include <span>

#include "isomer/autograd/tape.h"
#include "isomer/laws/bound_law.h"

namespace isomer::ops {

/// By the places of the law's inputs.
template <class T>
using LawVars = std::array<Var<T>, kMostTensors>;

template <class T>
struct LawOptions {
  Form form = Form::automatic;
  std::span<const std::int64_t> offsets = {};  // packed sequences: B = 1, states [n, …]
  /// A stream: the memory of its states by their places in Law::states(), or what BoundLaw::start made.
  std::span<const LawView> states = {};
  LawStream* stream = nullptr;  // carries no gradient
  /// Final states as values, by their places in Law::states(): those that the law has and that do not grow are set.
  std::span<Var<T>> finals = {};
};

/// → the law's outputs for every token, side by side in the last axis: o [B,T,H,V]; of scans h, and h_imag, [B,T,1,N].
/// `bound` must live as long as the tape's values.
template <class T>
[[nodiscard]] Var<T> law(Tape<T>& tape, const BoundLaw& bound, const LawVars<T>& in, const LawOptions<T>& options = {});

/// Absent values are left out.
template <class T>
[[nodiscard]] LawVars<T> law_vars(const Law& law, std::initializer_list<std::pair<std::string_view, Var<T>>> inputs);

}  // namespace isomer::ops
