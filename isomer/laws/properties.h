#pragma once
// What must hold for every law, written once against its specs. Test-only; no law may edit it.
//
//   agrees    a form gives what the reference gives: outputs, final states, gradients
//   splits    (L1, L2; properties_splits.h) a call may be cut anywhere, into single tokens too, if the state is carried, and
//             gradients flow back through the state
//   causal    (L3) a changed token leaves every output before it, and every other sequence, bit-identical, and no gradient
//             flows back from outputs to later tokens
//   threads   results do not depend on the number of threads
//   empty     no tokens: states and their gradients pass unchanged
//   slopes    (properties_slopes.h) the reference's gradients are the central differences of its outputs, in double
//
// Each returns what went wrong, one line a failure, or "".
#include "isomer/laws/properties_slices.h"
#include "isomer/laws/properties_trial.h"

namespace isomer::properties {

/// `want`: the reference's results in double, of the same case and seed.
[[nodiscard]] inline std::string agrees(const Trial& trial, const Tensors& want) {
  Report report(trial, "agrees");
  report.compare(trial.run(trial.inputs()), want, 1);
  return report.text();
}

/// The sequence that token t of row 0 belongs to: its index among the states and its tokens.
struct Home {
  Index sequence, begin, end;
};
[[nodiscard]] inline Home home_of(const Tensors& inputs, Index t, Index T) {
  const auto packed = inputs.find("offsets");
  if (packed == inputs.end()) return {0, 0, T};
  const std::int64_t* offsets = packed->second.data<std::int64_t>();
  Index i = 0;
  while (offsets[i + 1] <= t) ++i;
  return {i, Index(offsets[i]), Index(offsets[i + 1])};
}

/// Token t of row 0 becomes another in every input, far from what it was but within its domain.
inline void change_token(const Law& law, const Tensors& inputs, Index t) {
  const KeyRange keys = keys_of(law, inputs, t, t + 1);
  for (const auto& [name, x] : inputs) {
    const Layout layout = layout_of(law, name, x);
    if (layout.axis == 0 || name.starts_with("grad_")) continue;
    const Index at = layout.axis == 'T' ? t : keys.end - 1;
    for (Index i = at * layout.inner; i < (at + 1) * layout.inner; ++i) {
      const double old = number_at(x, i);
      switch (spec_of(law, name)->domain) {
        case Domain::log_decay: set_number(x, i, old - 3); break;
        case Domain::log_input: set_number(x, i, old + 5); break;
        case Domain::unit: set_number(x, i, 1 - old); break;
        default: set_number(x, i, 8 * old + 16);
      }
    }
  }
}

/// Outputs that token t does not reach are bit-identical when it changes; a law that looks both ways keeps to its sequence.
[[nodiscard]] inline std::string causal(const Trial& trial, Index t) {
  Report report(trial, "causal at " + std::to_string(t));
  Tensors inputs = trial.inputs();
  std::erase_if(inputs, [](const auto& item) { return item.first.starts_with("grad_"); });
  const Index T = tokens_of(trial.law, inputs, 'T');
  const Home home = home_of(inputs, t, T);
  const Tensors before = trial.run(inputs);
  change_token(trial.law, inputs, t);
  for (const auto& [name, got] : trial.run(inputs)) {
    // The numbers that may change: rows first … last − 1 of [rows, inner].
    const Layout layout = layout_of(trial.law, name, got);
    const bool state = layout.axis == 0;
    const Index first = state ? home.sequence : trial.is_causal() ? t : home.begin, last = state ? first + 1 : home.end;
    const Index row = state ? got.size() / got.shape()[0] : layout.inner;
    Tensor expected = before.at(name).clone();
    const Index size = row * bytes_of(got.type());
    std::memcpy(expected.bytes() + first * size, got.bytes() + first * size, std::size_t((last - first) * size));
    report.same_bits(name, got, expected, "where the change cannot reach");
  }
  return report.text();
}

/// No gradient reaches tokens from t on when it comes from outputs before t alone.
[[nodiscard]] inline std::string no_gradient_from_the_past(const Trial& trial, Index t) {
  Report report(trial, "gradient to tokens from " + std::to_string(t));
  Tensors inputs = trial.inputs();
  std::erase_if(inputs, [](const auto& item) { return item.first.starts_with("grad_final_"); });
  const Index T = tokens_of(trial.law, inputs, 'T');
  for (const auto& [name, x] : inputs)
    if (const Layout layout = layout_of(trial.law, name, x); name.starts_with("grad_") && layout.axis == 'T')
      for (Index i = 0; i < x.size(); ++i)
        if (i / layout.inner % layout.tokens >= t) set_number(x, i, 0);
  for (const auto& [name, x] : trial.run(inputs)) {
    const Layout layout = layout_of(trial.law, name, x);
    if (!name.starts_with("grad_") || layout.axis == 0) continue;
    Index wrong = 0;
    for (Index i = 0; i < x.size(); ++i)
      wrong += i / layout.inner % layout.tokens >= layout.tokens - T + t && number_at(x, i) != 0;
    if (wrong > 0) report.add(name, "has ", wrong, " numbers that are not zero");
  }
  return report.text();
}

/// `others`: the same trial with other numbers of threads.
[[nodiscard]] inline std::string threads(const Trial& trial, std::initializer_list<Trial> others) {
  const Tensors inputs = trial.inputs(), want = trial.run(inputs);
  std::string failures;
  for (const Trial& other : others) {
    Report report(other, std::to_string(other.context.threads()) + " threads");
    for (const auto& [name, got] : other.run(inputs)) report.same_bits(name, got, want.at(name), "to what the first gives");
    failures += report.text();
  }
  return failures;
}

/// The case must have T = 0.
[[nodiscard]] inline std::string empty(const Trial& trial) {
  Report report(trial, "empty");
  const Tensors inputs = trial.inputs(), out = trial.run(inputs);
  for (const auto& [name, x] : out) {
    std::string source;
    if (name.starts_with("final_")) source = "initial_" + name.substr(6);
    if (name.starts_with("grad_initial_")) source = "grad_final_" + name.substr(13);
    if (inputs.contains(source)) report.same_bits(name, x, inputs.at(source), "to " + source);
  }
  return report.text();
}

}  // namespace isomer::properties
