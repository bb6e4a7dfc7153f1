// In-context linear regression: pairs (x, w·x), then a query x; the weights w change with every prompt.
#include <cmath>

#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 7> kOptions{{
    {"dimension", "5", "numbers of x"},
    {"context", "100", "pairs of the prompt; the query is one more token, with 0 in the place of y"},
    {"covariance", "identity", "of x: identity, or toeplitz: rho^|i−j|"},
    {"rho", "0.5", "of the Toeplitz covariance"},
    {"noise", "0.1", "variance of what is added to w·x"},
    {"noisy_target", "true", "true: to the target too, so that the least error is this variance; false: to the prompt only"},
    {"weights", "scaled", "scaled: w ~ N(0, 1/dimension), so that w·x has variance 1 on average; unit: w ~ N(0, 1)"},
}};

class Regression final : public Task {
 public:
  explicit Regression(const TaskOptions& options)
      : Task(options),
        d_(std::size_t(options.size("dimension", 1, 1 << 12))),
        toeplitz_(options.choice("covariance", {"identity", "toeplitz"}) == 1),
        rho_(options.number("rho", -0.999, 0.999)),
        noise_(std::sqrt(options.number("noise", 0, 1e6))),
        noisy_target_(options.flag("noisy_target")),
        weight_(options.choice("weights", {"scaled", "unit"}) == 0 ? 1 / std::sqrt(double(d_)) : 1) {
    shape_ = {.kind = TaskKind::vectors,
              .metric = Metric::squared_error,
              .length = options.size("context", 1, 1 << 20) + 1,
              .features = Index(d_) + 1,
              .outputs = 1};
  }

 private:
  void draw(Example& e) const override {
    e.scratch.reals.resize(d_);
    std::vector<double>& w = e.scratch.reals;
    for (double& weight : w) weight = weight_ * e.rng.normal();
    const std::size_t T = e.inputs.size() / (d_ + 1);
    for (std::size_t t = 0; t < T; ++t) {
      const bool query = t + 1 == T;
      float* row = e.inputs.data() + t * (d_ + 1);
      double x = 0, y = 0;
      for (std::size_t i = 0; i < d_; ++i) {
        // An autoregression of order one has the Toeplitz covariance.
        const double z = e.rng.normal();
        x = toeplitz_ && i > 0 ? rho_ * x + std::sqrt(1 - rho_ * rho_) * z : z;
        row[i] = float(x);
        y += w[i] * x;
      }
      if (!query || noisy_target_) y += noise_ * e.rng.normal();
      (query ? e.targets[0] : row[d_]) = float(y);
    }
  }

  std::size_t d_;
  bool toeplitz_;
  double rho_, noise_;  // noise_: standard deviation
  bool noisy_target_;
  double weight_;  // standard deviation
};
}  // namespace

const TaskType task::regression{
    .name = "regression",
    .source = "Garg et al. 2022; Boursier & Boyer 2025 (large prompts)",
    .summary = "linear regression in context: from pairs (x, w·x), the value at a new x",
    .own_options = kOptions,
    .test_examples = "10000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Regression>(options); },
};

}  // namespace isomer
