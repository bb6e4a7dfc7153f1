#pragma once
// Several elementwise steps as one pass: a patch of cells goes through all of them while it is in the cache, and only what is
// asked for is written to memory.
//
//   // Values: 0 is g, 1 is x; 2 = exp(g); 3 = 2 · x.
//   const std::array steps{FusedStep{.a = 0, .f = Unary::exp}, FusedStep{.a = 2, .b = 1, .combine = Binary::multiply}};
//   const Fused plan{.inputs = 2, .steps = steps, .outputs = outputs};                 // outputs: 3
//   const std::array<View<const float, 4>, 2> inputs{g, x};
//   const std::array<View<float, 4>, 1> ys{y};
//   fused<float>(plan, inputs, ys, context);
//   const std::array<View<const float, 4>, 1> dys{dy};
//   const std::array<FusedTarget<float>, 2> targets{{{dg}, {dx}}};
//   fused_vjp<float>(plan, inputs, dys, targets, context);                             // computes what it needs of 2 again
//
// All outputs have one shape [B, T, H, D]; an axis of size 1 in an input is repeated, and its gradient summed in an order set by
// shapes and strides alone. Strides are free, dense ones fast. Gradients overlap neither each other nor another argument.
// At most kFusedValues values, and inputs and outputs as fits() says. Cost: one pass over inputs and outputs.
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/unary.h"

namespace isomer {

/// f(a), or a and b combined, or f(a) · b for an f of gated.h. Operands are values: the inputs, then one for each step before.
struct FusedStep {
  int a, b = -1;
  Unary f = Unary::identity;
  UnaryOptions options = {};
  Binary combine = Binary::add;

  [[nodiscard]] bool map() const { return b < 0; }
  [[nodiscard]] bool gate() const { return b >= 0 && f != Unary::identity; }
};

struct Fused {
  int inputs;
  std::span<const FusedStep> steps;
  std::span<const int> outputs;  // values of steps, each once

  [[nodiscard]] int values() const { return inputs + int(steps.size()); }
};

inline constexpr int kFusedValues = 48;
/// Can so many be one pass?
[[nodiscard]] bool fits(int inputs, int steps, int outputs);

template <class T>
void fused(const Fused& plan, std::span<const View<const T, 4>> inputs, std::span<const View<T, 4>> outputs, Context& context);

template <class T>
struct FusedTarget {
  View<T, 4> view = {};  // absent: not wanted
  Accumulate mode = Accumulate::set;
};

/// dy: one an output, absent where none arrived; targets: one an input.
template <class T>
void fused_vjp(const Fused& plan, std::span<const View<const T, 4>> inputs, std::span<const View<const T, 4>> dy,
               std::span<const FusedTarget<T>> targets, Context& context);

}  // namespace isomer
