#pragma once
// A law that is bound to its options, on named arrays, with outputs in memory of the caller's: what bindings call. Others call
// apply() of law.h.
#include "isomer/laws/bound_law.h"

namespace isomer {

/// Memory for an output or a gradient, with any strides; called once for each that apply() of law.h returns, by its name.
using MakeTensor = std::function<LawView(const std::string& name, Type type, const std::vector<Index>& shape)>;

struct NamedRun {
  Form form = Form::automatic;
  LawTape* tape = nullptr;  // forward() leaves on it what backward(), with the same inputs, finds there
  Context& context;
};

/// Checks names, types, shapes and form, and runs. The numbers are not looked at, which require_finite() does: what a law does
/// with those that are not finite is said in its header.
void apply(const BoundLaw& bound, const NamedViews& inputs, Form form, Context& context, const MakeTensor& make);

/// The same in two steps: the outputs alone …
void forward(const BoundLaw& bound, const NamedViews& inputs, const NamedRun& run, const MakeTensor& make);
/// … and, from the inputs with grad_… of outputs among them and the outputs that forward() wrote, the gradients of those inputs
/// for which `make` has memory.
void backward(const BoundLaw& bound, const NamedViews& inputs, const NamedViews& outputs, const NamedRun& run,
              const MakeTensor& make);

/// Throws Error for the first number that is not finite; −inf is fine where it is the logarithm of a decay.
void require_finite(const Law& law, const NamedViews& inputs);

}  // namespace isomer
