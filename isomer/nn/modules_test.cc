#include "isomer/nn/modules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/base/error.h"
#include "isomer/nn/init.h"
#include "isomer/nn/testing.h"

namespace isomer {
namespace {
using testing::expect_parameter_gradients;
using testing::random_values;

std::vector<std::string> names(const Parameters<double>& parameters) {
  std::vector<std::string> list;
  for (const Parameter<double>& p : parameters.all()) list.push_back(p.name());
  std::ranges::sort(list);
  return list;
}

TEST(Linear, IsAProductWithABias) {
  Parameters<double> parameters;
  const Linear<double> layer(parameters, "head", 3, 2, {.bias = true});
  EXPECT_EQ(names(parameters), (std::vector<std::string>{"head.bias", "head.weight"}));
  EXPECT_EQ(parameters.find("head.bias").spec.decay, Decay::no);
  std::ranges::copy(std::vector<double>{1, 2, 3, 4, 5, 6}, parameters.find("head.weight").values().begin());
  std::ranges::copy(std::vector<double>{10, 20}, parameters.find("head.bias").values().begin());
  Context context(1);
  Tape<double> tape(context);
  std::vector<double> x{1, 0, -1};
  const Var<double> y = layer(tape, tape.input(contiguous(x.data(), {1, 1, 1, 3})));
  EXPECT_EQ(y.value(0, 0, 0, 0), 8.0);
  EXPECT_EQ(y.value(0, 0, 0, 1), 18.0);
}

TEST(NormLayer, StartsAsTheIdentityOfWhatIsNormal) {
  for (const Norm kind : {Norm::rms, Norm::layer}) {
    Parameters<double> parameters;
    const NormLayer<double> layer(parameters, "norm", 4, {.kind = kind, .eps = 0});
    EXPECT_EQ(parameters.all().size(), kind == Norm::layer ? 2u : 1u);
    EXPECT_EQ(parameters.find("norm.weight").spec.decay, Decay::no);
    initialise(parameters, 1);
    Context context(1);
    Tape<double> tape(context);
    std::vector<double> x{1, -1, 1, -1};
    const Var<double> y = layer(tape, tape.input(contiguous(x.data(), {1, 1, 1, 4})));
    for (Index d = 0; d < 4; ++d) EXPECT_NEAR(y.value(0, 0, 0, d), x[std::size_t(d)], 1e-15);
  }
}

TEST(Mlp, HasTheSizesOfItsKind) {
  EXPECT_EQ(hidden_size({.kind = MlpKind::gelu}, 256), 1024);
  EXPECT_EQ(hidden_size({.kind = MlpKind::swiglu}, 256), 704);
  EXPECT_EQ(hidden_size({.kind = MlpKind::swiglu, .hidden = 5}, 256), 5);
  Parameters<double> parameters;
  const Mlp<double> mlp(parameters, "mlp", 6, {.kind = MlpKind::swiglu, .hidden = 5, .bias = true});
  EXPECT_EQ(names(parameters), (std::vector<std::string>{"mlp.down.bias", "mlp.down.weight", "mlp.gate.bias", "mlp.gate.weight",
                                                         "mlp.up.bias", "mlp.up.weight"}));
}

TEST(Mlp, FollowsItsEquation) {
  for (const MlpKind kind : {MlpKind::gelu, MlpKind::swiglu}) {
    Parameters<double> parameters;
    const Mlp<double> mlp(parameters, "mlp", 1, {.kind = kind, .hidden = 1});
    const auto set = [&](const char* name, double value) { parameters.find(name).values()[0] = value; };
    set("mlp.up.weight", 0.5);
    set("mlp.down.weight", 3);
    if (kind == MlpKind::swiglu) set("mlp.gate.weight", 2);
    Context context(1);
    Tape<double> tape(context);
    double x = 0.75;
    const Var<double> y = mlp(tape, tape.input(contiguous(&x, {1, 1, 1, 1})));
    const double up = 0.375;
    const double gelu = up * 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (up + 0.044715 * up * up * up)));
    const double silu = 1.5 / (1 + std::exp(-1.5));
    EXPECT_NEAR(y.value(0, 0, 0, 0), kind == MlpKind::gelu ? 3 * gelu : 3 * silu * up, 1e-14) << name_of(kind);
  }
}

TEST(Mlp, HasTheGradientsOfItsEquation) {
  for (const MlpKind kind : {MlpKind::gelu, MlpKind::swiglu}) {
    Parameters<double> parameters;
    const Mlp<double> mlp(parameters, "mlp", 3, {.kind = kind, .hidden = 5, .bias = true, .deviation = 1, .down_deviation = 1});
    initialise(parameters, 3);
    expect_parameter_gradients(parameters, random_values({2, 3, 1, 3}, 1),
                               [&](Tape<double>& tape, Var<double> x) { return mlp(tape, x); });
  }
}

TEST(Mlp, HasNames) {
  for (const MlpKind kind : {MlpKind::none, MlpKind::gelu, MlpKind::swiglu}) EXPECT_EQ(mlp_named(name_of(kind)), kind);
  EXPECT_THROW((void)mlp_named("gegelu"), Error);
}

}  // namespace
}  // namespace isomer
