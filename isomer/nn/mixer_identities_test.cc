// Identities of the sources that hold between presets, with parameters that are set by hand or drawn alike. Those between the
// laws alone are in mixers/identities_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

#include "isomer/base/rng.h"
#include "isomer/laws/check.h"
#include "isomer/laws/layout.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"

namespace isomer {
namespace {

/// A mixer in double on one sequence.
struct Layer {
  Index width, tokens;
  Context context{1};
  Parameters<double> parameters;
  Mixer<double> mixer;
  std::vector<double> x;

  Layer(std::string_view preset, Index own_width, Index own_tokens, const Settings& settings)
      : width(own_width),
        tokens(own_tokens),
        mixer(build_mixer(preset, {.width = own_width}, settings), parameters, ""),
        x(std::size_t(own_width * own_tokens)) {
    initialise(parameters, 5);
    Rng rng(6);
    for (double& value : x) value = rng.normal();
  }
  [[nodiscard]] std::span<double> values(const char* name) const { return parameters.find(name).values(); }
  void set(const char* name, const std::vector<double>& numbers) const {
    ASSERT_EQ(values(name).size(), numbers.size()) << name;
    std::copy(numbers.begin(), numbers.end(), values(name).begin());
  }
  void scale(const char* name, double factor) const {
    for (double& value : values(name)) value *= factor;
  }
  /// The first law of the mixer.
  [[nodiscard]] LawCall law() {
    Tape<double> tape(context, Record::no);
    return std::move(mixer.law_calls(tape, tape.input(contiguous(x.data(), {1, tokens, 1, width}))).front());
  }
  [[nodiscard]] Tensor output() { return law().outputs.at("o").clone(); }
  /// φ(q_t)·φ(k_s) of the first head: [T, T].
  [[nodiscard]] std::vector<double> kernel() {
    const LawCall call = law();
    const auto q = call.inputs.at("q").view<const double, 4>(), k = call.inputs.at("k").view<const double, 4>();
    std::vector<double> all;
    for (Index t = 0; t < tokens; ++t)
      for (Index s = 0; s < tokens; ++s) {
        all.push_back(0);
        for (Index i = 0; i < q.shape[3]; ++i) all.back() += q(0, t, 0, i) * k(0, s, 0, i);
      }
    return all;
  }
};

std::vector<double> unit_matrix(Index n, double factor = 1) {
  std::vector<double> all(std::size_t(n * n), 0.0);
  for (Index i = 0; i < n; ++i) all[i * n + i] = factor;
  return all;
}

// Mongaras & Larson: the polynomial's layer becomes the softmax layer as its order grows.
TEST(TaylorPreset, BecomesTheSoftmaxPreset) {
  // Queries and keys of about unit size.
  const auto output = [](std::string_view preset, const Settings& settings) {
    Layer layer(preset, 16, 20, settings);
    layer.scale("q.weight", 12);
    layer.scale("k.weight", 12);
    return layer.output();
  };
  const Tensor want = output("softmax", {});
  double before = 1;
  for (const char* order : {"2", "4", "8", "16", "30"}) {
    const double error = relative_error(output("taylor", {{"order", order}}), want);
    EXPECT_LT(error, before) << order;
    before = error;
  }
  EXPECT_LT(before, 1e-12);
}

TEST(SoftmaxNormPreset, IsSoftmaxThenL2) {
  Layer norm("softmax-norm", 16, 20, {{"norm", "l2"}}), softmax("softmax", 16, 20, {});
  Tensor want = softmax.output();
  const auto o = want.view<double, 4>();
  for (Index t = 0; t < o.shape[1]; ++t)
    for (Index h = 0; h < o.shape[2]; ++h) {
      double square = 0;
      for (Index c = 0; c < o.shape[3]; ++c) square += o(0, t, h, c) * o(0, t, h, c);
      for (Index c = 0; c < o.shape[3]; ++c) o(0, t, h, c) /= std::sqrt(square);
    }
  EXPECT_LE(relative_error(norm.output(), want), 1e-13);
}

// Mongaras & Larson, P1.3, gated_relu: weights min(relu(q)·relu(k) / √K, clamp).
TEST(LinearReluPreset, ClampsItsWeights) {
  const auto layer_with = [](Settings settings) {
    settings["denominator"] = "none";
    auto layer = std::make_unique<Layer>("linear-relu", 16, 20, settings);
    layer->scale("q.weight", 12);
    layer->scale("k.weight", 12);
    return layer;
  };
  const LawCall call = layer_with({})->law();
  const auto q = call.inputs.at("q").view<const double, 4>(), k = call.inputs.at("k").view<const double, 4>(),
             v = call.inputs.at("v").view<const double, 4>();
  Tensor want = call.outputs.at("o").clone();
  const auto o = want.view<double, 4>();
  Index above = 0;
  each_element(o.shape, [&](const auto& i) {
    const auto [b, t, h, c] = i;
    o(b, t, h, c) = 0;
    for (Index s = 0; s <= t; ++s) {
      double dot = 0;
      for (Index d = 0; d < q.shape[3]; ++d) dot += q(b, t, h, d) * k(b, s, h, d);
      const double weight = dot / std::sqrt(double(q.shape[3]));
      above += weight > 0.5 ? 1 : 0;
      o(b, t, h, c) += std::min(weight, 0.5) * v(b, s, h, c);
    }
  });
  EXPECT_GT(above, want.size());
  EXPECT_LE(relative_error(layer_with({{"clamp", "0.5"}})->output(), want), 1e-13);
  EXPECT_LE(relative_error(layer_with({{"clamp", "1000"}})->output(), call.outputs.at("o")), 1e-13);
}

// Han et al. 1.3: the error is quadratic in the size of the logits.
TEST(InLinePreset, IsTheSoftmaxPresetToFirstOrder) {
  std::vector<double> errors;
  for (double size : {1.0, 0.1, 0.01}) {
    Layer first("inline", 16, 20, {}), softmax("softmax", 16, 20, {{"position", "none"}});
    first.scale("q.weight", size);
    softmax.scale("q.weight", size);
    errors.push_back(relative_error(first.output(), softmax.output()));
  }
  EXPECT_NEAR(errors[0] / errors[1], 100, 20);
  EXPECT_NEAR(errors[1] / errors[2], 100, 2);
}

/// Queries and keys are the tokens times `size`, all of one head.
void read_tokens(const Layer& layer, double size) {
  layer.set("q.weight", unit_matrix(layer.width, size));
  layer.set("k.weight", unit_matrix(layer.width, size));
}

// Choromanski et al.: the mean of φ(q)·φ(k) over draws of the directions is exp(q·k/√K).
TEST(Performer, IsUnbiased) {
  constexpr int kDraws = 4000;
  for (const char* orthogonal : {"true", "false"}) {
    Layer layer("performer", 4, 4, {{"heads", "1"}, {"features", "6"}, {"orthogonal", orthogonal}});
    read_tokens(layer, 0.5);
    const graph::Init init = layer.parameters.find("features.weight").spec.init;
    std::vector<double> sum(16, 0.0), squares(16, 0.0);
    for (int n = 0; n < kDraws; ++n) {
      layer.set("features.weight",
                initial_values(init, layer.parameters.find("features.weight").spec.shape, Rng(9, std::uint64_t(n))));
      const std::vector<double> kernel = layer.kernel();
      for (std::size_t i = 0; i < kernel.size(); ++i) sum[i] += kernel[i], squares[i] += kernel[i] * kernel[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double dot = 0;
      for (Index d = 0; d < 4; ++d) dot += 0.25 * layer.x[i / 4 * 4 + d] * layer.x[i % 4 * 4 + d];
      const double mean = sum[i] / kDraws, error = std::sqrt((squares[i] / kDraws - mean * mean) / kDraws);
      EXPECT_NEAR(mean, std::exp(dot / 2), 4 * error) << orthogonal;
      EXPECT_LT(error, 0.1 * mean) << "the mean says something";
    }
  }
}

/// Sets ψ to the broken line through f at `hidden` corners on [−range, range]. Off by at most f''·(gap²)/8 inside.
void set_psi(const Layer& layer, Index hidden, double range, const std::vector<std::function<double(double)>>& functions) {
  std::vector<double> w1, b1, w2, b2;
  const double gap = 2 * range / double(hidden);
  for (const auto& f : functions) {
    const auto slope = [&](Index j) { return (f(-range + double(j + 1) * gap) - f(-range + double(j) * gap)) / gap; };
    for (Index j = 0; j < hidden; ++j) {
      w1.push_back(1);
      b1.push_back(range - double(j) * gap);
      w2.push_back(slope(j) - (j > 0 ? slope(j - 1) : 0));
    }
    b2.push_back(f(-range));
  }
  layer.set("psi.hidden.weight", w1);
  layer.set("psi.hidden.bias", b1);
  layer.set("psi.output.weight", w2);
  layer.set("psi.output.bias", b2);
}

double worst(const std::vector<double>& got, const std::vector<double>& want) {
  double all = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    all = std::max(all, std::abs(got[i] - want[i]) / std::max(1.0, std::abs(want[i])));
  return all;
}

// Shahbazi et al. 3.1: ψ = sin and cos of random directions is RFF; ψ = exp under a Gaussian envelope is Performer. ψ is a broken
// line here, so the difference falls with the square of the distance of its corners.
TEST(Luna, WithSineAndCosineIsRff) {
  Layer rff("rff", 4, 6, {{"heads", "1"}, {"features", "8"}});
  for (Index t = 0; t < rff.tokens; ++t) {  // rff reads tokens of length one
    double square = 0;
    for (Index d = 0; d < 4; ++d) square += rff.x[t * 4 + d] * rff.x[t * 4 + d];
    for (Index d = 0; d < 4; ++d) rff.x[t * 4 + d] /= std::sqrt(square);
  }
  read_tokens(rff, 1);
  std::vector<double> errors;
  for (Index hidden : {100, 1000}) {
    Layer luna(
        "luna", 4, 6,
        {{"heads", "1"}, {"features", "8"}, {"functions", "2"}, {"hidden", std::to_string(hidden)}, {"positive", "false"}});
    luna.x = rff.x;
    read_tokens(luna, 1);
    const auto directions = rff.values("features.weight");
    luna.set("features.weight", {directions.begin(), directions.end()});
    set_psi(luna, hidden, 5, {[](double u) { return std::sin(u); }, [](double u) { return std::cos(u); }});
    errors.push_back(worst(luna.kernel(), rff.kernel()));
  }
  EXPECT_LE(errors[1], 1e-4 / 8 * 2) << "the gap is 1/100";
  EXPECT_NEAR(errors[0] / errors[1], 100, 40);
}

TEST(Luna, WithExpAndAGaussianEnvelopeIsPerformer) {
  Layer performer("performer", 4, 6, {{"heads", "1"}, {"features", "8"}});
  read_tokens(performer, 1);
  std::vector<double> errors;
  for (Index hidden : {160, 1600}) {
    Layer luna("luna", 4, 6,
               {{"heads", "1"},
                {"features", "8"},
                {"functions", "1"},
                {"hidden", std::to_string(hidden)},
                {"envelope", "gaussian"},
                {"positive", "false"}});
    luna.x = performer.x;
    read_tokens(luna, std::pow(4.0, -0.25));
    const auto directions = performer.values("features.weight");
    luna.set("features.weight", {directions.begin(), directions.end()});
    set_psi(luna, hidden, 8, {[](double u) { return std::exp(u); }});
    errors.push_back(worst(luna.kernel(), performer.kernel()));
  }
  EXPECT_LE(errors[1], 1e-4 / 8 * 4) << "the gap is 1/100, and both features are off";
  EXPECT_NEAR(errors[0] / errors[1], 100, 40);
}

// Movahedi et al. 3.2: one layer with angles from the input counts ones modulo two, for any length.
TEST(SelectiveRopePreset, SolvesParityByConstruction) {
  const Index T = 100;
  Layer layer("linear-identity", 4, T,
              {{"heads", "1"},
               {"key", "2"},
               {"value", "1"},
               {"position", "selective-rope"},
               {"phase_silu", "false"},
               {"phase_gate", "false"},
               {"phase_temperature", "equal"},
               {"denominator", "none"}});
  // Tokens: 0 begins, 1 is a zero, 2 is a one.
  Rng rng(12);
  std::vector<int> parity;
  std::fill(layer.x.begin(), layer.x.end(), 0.0);
  for (Index t = 0; t < T; ++t) {
    const Index token = t == 0 ? 0 : 1 + Index(rng.below(2));
    layer.x[t * 4 + token] = 1;
    parity.push_back(((t > 0 ? parity.back() : 0) + (token == 2 ? 1 : 0)) % 2);
  }
  const double root = std::numbers::sqrt2;  // the scale of two keys
  layer.set("q.weight", {root, root, root, 0, 0, 0, 0, 0});
  layer.set("k.weight", {1, 0, 0, 0, 0, 0, 0, 0});
  layer.set("v.weight", {1, 0, 0, 0});
  layer.set("phase.weight", {0, 0, 1, 0});
  layer.set("phase_scale", {std::numbers::pi});
  layer.set("phase_conv.weight", {0, 0, 0, 1});
  const Tensor o = layer.output();
  for (Index t = 0; t < T; ++t) ASSERT_NEAR(o.data<double>()[t], parity[t] == 0 ? 1 : -1, 1e-11) << t;
}

}  // namespace
}  // namespace isomer
