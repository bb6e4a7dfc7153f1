// rff: phi(x) = m^-1/2 [sin(w_i·x), cos(w_i·x)] of x / |x|, w ~ N(0, sigma^-2 I), drawn once. Weights may be slightly negative:
// the denominator has a floor. Option gate: S_t = g S_{t-1} + (1 - g) phi(k) vᵀ, g = sigmoid(w·x + b).
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::rff {

namespace {
void build(Builder& m) {
  const auto sizes = parts::linear_sizes(m);
  const Index features = m.size("features", sizes.key, "random directions of each head; each gives a sine and a cosine");
  const double sigma = m.number("sigma", 1, "width of the Gaussian kernel");
  require(sigma > 0, "sigma", "expected a positive number, got ", sigma);
  const bool gate = m.flag("gate", false, "a forget gate of each head");
  const graph::HeadLinear random{.shared = true, .training = graph::Training::fixed, .weight = graph::normal(1 / sigma)};
  const auto feature = [&](Value x, std::string_view) {
    const Value unit = m.normalise("", x, {.kind = Norm::l2, .eps = 1e-12});
    const Value angle = m.head_linear("features", unit, features, random);
    const double scale = 1 / std::sqrt(double(features));
    return m.concat({m.affine(m.map(Unary::sin, angle), scale), m.affine(m.map(Unary::cos, angle), scale)});
  };
  Value log_decay, log_input;
  if (gate) {
    const Value z = m.heads(m.linear("gate", m.x(), sizes.heads, {.bias = true}), sizes.heads);
    log_decay = m.named("log_decay", m.map(Unary::log_sigmoid, z));
    log_input = m.named("log_input", m.map(Unary::log_sigmoid, m.affine(z, -1)));
  }
  parts::linear_mixer(m, {.feature = feature,
                          .positive = false,
                          .readout = {.denominator = "clamp", .floor = 0.1},
                          .sizes = sizes,
                          .log_decay = log_decay,
                          .log_input = log_input});
}
}  // namespace

extern const Preset rff{.name = "rff",
                        .source = "Peng et al. 2021, Random Feature Attention (arXiv 2103.02143), eq. 4-7",
                        .summary = "random Fourier features of unit queries and keys",
                        .build = build};

}  // namespace isomer::preset::rff
