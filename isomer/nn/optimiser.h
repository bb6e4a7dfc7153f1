#pragma once
// AdamW and SGD with momentum on the trained parameters of a store, with decoupled weight decay and clipping by global norm.
//
//   Optimiser<float> optimiser(parameters, {.kind = OptimiserKind::adamw, .weight_decay = 0.1, .clip = 1.0});
//   tape.backward(loss);
//   for (std::span<float> group : parameters.gradient_groups()) sum_over_ranks(group);  // if there are several
//   const double norm = optimiser.step(lr * factor(schedule, step), context);
//   parameters.zero_gradients();
//
// With g the gradient times min(1, clip / norm), norm that of all gradients together:
//   adamw  m = β₁ m + (1 − β₁) g,  v = β₂ v + (1 − β₂) g²,  w −= lr (m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + eps) + decay · w)
//   sgd    m = momentum · m + g,   w −= lr (m + decay · w)
// A parameter that no gradient reached has the gradient zero: its moments shrink, its decay goes on.
// Decay is for matrices alone (Decay::yes of a ParameterSpec) unless a group says otherwise.
// The store must be complete before an optimiser is made for it. Nothing is allocated by step(). Its work is cut into blocks by
// the sizes of parameters alone, and the norm is summed over them in order and in double: threads change nothing.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/nn/parameters.h"

namespace isomer {

enum class OptimiserKind : std::uint8_t { adamw, sgd };
[[nodiscard]] std::string_view name_of(OptimiserKind kind);
/// Throws Error naming the nearest when there is none of that name.
[[nodiscard]] OptimiserKind optimiser_named(std::string_view name);

/// What some parameters have of their own. A parameter belongs to the first group whose pattern its name matches; '*' stands for
/// any text.
struct ParameterGroup {
  std::string match;
  double lr_factor = 1;
  std::optional<double> weight_decay = {};  // absent: as if there were no group
};

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::adamw;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double momentum = 0.9;
  double weight_decay = 0.1;
  double clip = 1;  // 0: none
  std::vector<ParameterGroup> groups = {};
};

/// Throws Error for numbers out of range.
void check(const OptimiserOptions& options);

template <class T>
class Optimiser {
 public:
  /// Puts the gradients of each group into one array (Parameters::gradient_groups), those of no group into the last. Throws
  /// Error for numbers out of range and for a group that no trained parameter belongs to.
  Optimiser(Parameters<T>& parameters, OptimiserOptions options);

  /// The norm of all gradients before clipping. If it is not finite nothing has been changed.
  double step(double lr, Context& context);
  [[nodiscard]] double gradient_norm(Context& context);
  /// How many were taken.
  [[nodiscard]] Index steps() const { return steps_; }

  /// Copies for a checkpoint: "step", and "m.NAME" and "v.NAME" (adamw) for each trained parameter. With the parameters they
  /// continue the run exactly.
  [[nodiscard]] Tensors state() const;
  /// Throws Error for a missing, an unknown or a misshaped name or another type, and then nothing has changed.
  void load(const Tensors& state);

 private:
  struct Moments {
    const Parameter<T>* parameter;
    Buffer<T> first, second;  // second: adamw only
    double lr_factor, weight_decay;
  };
  struct Block {
    std::size_t owner;
    Index begin, size;
  };
  [[nodiscard]] std::size_t group_of(const Parameter<T>& parameter) const;
  void update(const Block& block, double lr, double gradient_scale, Isa isa) const;

  OptimiserOptions options_;
  std::vector<Moments> moments_;
  std::vector<Block> blocks_;
  std::vector<double> squares_;  // of the gradients of each block
  Index steps_ = 0;
};

extern template class Optimiser<float>;
extern template class Optimiser<double>;

}  // namespace isomer
