#pragma once
// For the property suite: the reference's gradients against central differences of its outputs, in double.
#include <cmath>
#include <iterator>

#include "isomer/laws/properties_slices.h"
#include "isomer/laws/properties_trial.h"

namespace isomer::properties {

/// Σ grad_X · X over the outputs X. States are compared in the scale `fixed` (final_max of the unchanged call), as their
/// gradients are.
[[nodiscard]] inline double loss(const Trial& trial, const Tensors& inputs, const Tensors& gradients, const Tensor* fixed) {
  const Tensors out = trial.run(inputs);
  double sum = 0;
  for (const auto& [name, gradient] : gradients) {
    const Tensor& x = out.at(name.substr(5));
    const bool scaled = fixed != nullptr && name.starts_with("grad_final_");
    for (Index i = 0; i < x.size(); ++i) {
      const Index m = scaled ? i / (x.size() / fixed->size()) : 0;
      sum += number_at(gradient, i) * number_at(x, i) *
             (scaled ? std::exp(number_at(out.at("final_max"), m) - number_at(*fixed, m)) : 1);
    }
  }
  return sum;
}

/// Largest relative error allowed is 1e-6. The trial is one of the reference in double.
[[nodiscard]] inline std::string slopes(const Trial& trial) {
  constexpr double kStep = 0x1p-15, kLimit = 1e-6;
  Report report(trial, "slopes");
  Tensors inputs = trial.inputs(), gradients;
  const Tensors out = trial.run(inputs);
  for (auto it = inputs.begin(); it != inputs.end();) {
    const auto next = std::next(it);
    if (it->first.starts_with("grad_")) gradients.insert(inputs.extract(it));
    it = next;
  }
  const auto fixed = out.find("final_max");
  Tensors differences = clone(out);
  for (const auto& [name, x] : inputs) {
    if (!differentiable(spec_of(trial.law, name)->domain)) continue;
    if (!out.contains("grad_" + name)) {
      report.add("grad_" + name, "is missing");
      continue;
    }
    const Tensor& slope = differences.at("grad_" + name);
    for (Index i = 0; i < x.size(); ++i) {
      const double old = number_at(x, i);
      double side[2];
      for (int s : {0, 1}) {
        set_number(x, i, s == 0 ? old - kStep : old + kStep);
        side[s] = loss(trial, inputs, gradients, fixed == out.end() ? nullptr : &fixed->second);
      }
      set_number(x, i, old);
      set_number(slope, i, (side[1] - side[0]) / (2 * kStep));
    }
    const double error = relative_error(out.at("grad_" + name), slope, scale_of("grad_" + name, out));
    if (!(error <= kLimit)) report.add("grad_" + name, "has error ", error, " against differences, at most ", kLimit);
  }
  return report.text();
}

}  // namespace isomer::properties
