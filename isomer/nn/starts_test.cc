// What parameters of presets start with, where their sources say so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>

#include "isomer/base/rng.h"
#include "isomer/mixers/parts.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"

namespace isomer {
namespace {

/// A mixer's parameters as they start.
struct Started {
  Parameters<double> parameters;
  Mixer<double> mixer;

  explicit Started(std::string_view preset, const Place& place = {.width = 64}, const Settings& settings = {})
      : mixer(build_mixer(preset, place, settings), parameters, "") {
    initialise(parameters, 7);
  }
  [[nodiscard]] std::span<const double> at(const char* name) const { return parameters.find(name).values(); }
  /// Of numbers with mean 0.
  [[nodiscard]] double deviation(const char* name) const {
    double squares = 0;
    for (const double x : at(name)) squares += x * x;
    return std::sqrt(squares / double(at(name).size()));
  }
  [[nodiscard]] double largest(const char* name) const {
    double most = 0;
    for (const double x : at(name)) most = std::max(most, std::abs(x));
    return most;
  }
};

// Σ_k S_nk v_k = i w v_n for the normal part S of HiPPO-LegS without its -1/2, and v by the components' recurrence.
TEST(HippoN, HasTheseEigenvalues) {
  constexpr Index kSize = 12, kStates = 2 * kSize;
  const std::vector<double> all = parts::hippo_frequencies(kSize);
  ASSERT_EQ(all.size(), std::size_t(kSize));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  for (const double w : all) {
    std::vector<std::complex<double>> v{1.0};
    const auto b = [](Index n) { return std::sqrt(double(2 * n + 1)); };
    const auto row = [&](Index n) { return std::complex<double>(0, 2 * w) / (b(n) * b(n)); };
    for (Index n = 1; n < kStates; ++n) v.push_back(v.back() * b(n - 1) / b(n) * (row(n - 1) - 1.0) / (row(n) + 1.0));
    for (Index n = 0; n < kStates; ++n) {
      std::complex<double> sum = 0;
      for (Index k = 0; k < kStates; ++k) sum += (n > k ? -0.5 : n < k ? 0.5 : 0.0) * b(n) * b(k) * v[std::size_t(k)];
      EXPECT_LE(std::abs(sum - std::complex<double>(0, w) * v[std::size_t(n)]), 1e-11 * std::max(1.0, w)) << w << " at " << n;
    }
  }
}

TEST(Starts, OfStateSpaces) {
  const Started s5("s5", {.width = 64}, {{"blocks", "2"}});
  const std::vector<double> half = parts::hippo_frequencies(16);
  for (std::size_t n = 0; n < 32; ++n) EXPECT_EQ(s5.at("frequency")[n], half[n % 16]);
  const Started lru("lru");
  for (std::size_t n = 0; n < 64; ++n) {
    const double radius = std::exp(-std::exp(lru.at("nu")[n]));
    EXPECT_NEAR(std::exp(2 * lru.at("gamma_log")[n]), 1 - radius * radius, 1e-12);
  }
  // 256 numbers: a deviation is off by at most 4/√512 of itself.
  EXPECT_NEAR(Started("rg-lru").deviation("conv.weight"), 0.05, 0.05 * 4 / std::sqrt(512.0));
}

TEST(Starts, OfInLineAndMlstm) {
  const Started residual("inline");
  for (const char* name : {"residual_in.weight", "residual_in.bias", "residual_out.weight", "residual_out.bias"}) {
    EXPECT_LE(residual.largest(name), 0.25) << name;
    EXPECT_GE(residual.largest(name), 0.22) << name << ": (64 / 4)^-1/2";
  }
  const Started mlstm("mlstm", {.width = 64}, {{"block", "pre-up"}});
  const double small = std::sqrt(2.0 / (5 * 64));
  for (const char* name : {"q.weight", "k.weight", "v.weight"})
    EXPECT_NEAR(mlstm.deviation(name), small, small * 4 / std::sqrt(1024.0)) << name;
}

TEST(Starts, OfRwkv) {
  const Place third{.width = 64, .layer = 2, .layers = 4, .before = 2};
  const Started six("rwkv6", third), seven("rwkv7", third);
  for (const Started* layer : {&six, &seven}) {
    EXPECT_EQ(layer->largest("o.weight"), 0);
    for (const double weight : layer->at("norm.weight")) EXPECT_DOUBLE_EQ(weight, std::pow(0.75, 0.7));
    // Orthonormal rows, times a tenth for k.
    EXPECT_NEAR(layer->deviation("r.weight"), 1.0 / 8, 1e-12);
    EXPECT_NEAR(layer->deviation("v.weight"), 1.0 / 8, 1e-12);
    EXPECT_NEAR(layer->deviation("k.weight"), 0.1 / 8, 1e-12);
  }
  EXPECT_NEAR(six.deviation("g.weight"), 0.1 / 8, 1e-12);
  EXPECT_EQ(seven.largest("r_k.weight"), 0);
  // 64 × 32 with orthonormal columns, times a tenth.
  EXPECT_NEAR(seven.deviation("w.weight"), 0.1 / 8, 1e-12);
}

// What a run starts with, which must come again when it is repeated: a changed line here belongs into the CHANGELOG, and the
// failing test prints the new one. In float, which hides the last bits of logarithms and powers.
TEST(Starts, AreWhatASeedAlwaysGave) {
  const std::map<std::string_view, std::string_view> known{
      {"based", "d4c7c6c736784c96"},
      {"cosformer", "d4c7c6c736784c96"},
      {"deltanet", "92baeaf2c453a73f"},
      {"fox", "35964a2c153e025f"},
      {"gated-deltanet", "a3d40e8657f01c0d"},
      {"gla", "51b5dea92d9b3a00"},
      {"hedgehog", "5386c241a5a3d36d"},
      {"hgrn2", "954e1114c27e58d0"},
      {"inline", "2a3a109f98886cb6"},
      {"kda", "398ec838ab47b49a"},
      {"linear-cosine", "4170df09b6bd1dc0"},
      {"linear-elu", "d4c7c6c736784c96"},
      {"linear-exp", "d4c7c6c736784c96"},
      {"linear-identity", "03b1514afb0836d4"},
      {"linear-relu", "d4c7c6c736784c96"},
      {"linear-softmax", "d4c7c6c736784c96"},
      {"lru", "444896957c3a1d35"},
      {"luna", "aeeab20a349c9e27"},
      {"mamba", "d76d03b3b7b0f231"},
      {"mamba2", "9f8619db02dca8a7"},
      {"metala", "7ed2162175deba33"},
      {"mlstm", "7a4bf293f4a6261d"},
      {"mlstm-sig", "7a4bf293f4a6261d"},
      {"normalized", "e0882e742ea72605"},
      {"performer", "3968866d9a81c7a4"},
      {"qlstm", "81fd78dfc51fa775"},
      {"qlstm-reversed", "1af8e10bbfdcf496"},
      {"retnet", "9332e8c604b1daec"},
      {"rff", "69dca05f6d5811b0"},
      {"rg-lru", "fd3f495c8e03ea5a"},
      {"rwkv6", "f21317caddae3bc7"},
      {"rwkv7", "8adda84483438c0f"},
      {"s4d", "aa49228dc727c109"},
      {"s5", "5dc8581a0b1ba520"},
      {"sliding-window", "d4c7c6c736784c96"},
      {"softmax", "d4c7c6c736784c96"},
      {"softmax-count", "d4c7c6c736784c96"},
      {"softmax-gate", "ae4e1a73d6db4d27"},
      {"softmax-norm", "d4c7c6c736784c96"},
      {"t2r", "da1c561d864e4cba"},
      {"taylor", "d4c7c6c736784c96"},
  };
  for (const Preset* preset : presets()) {
    Parameters<float> parameters;
    const Mixer<float> mixer(build_mixer(*preset, {.width = 64, .layer = 1, .layers = 2}), parameters, "");
    initialise(parameters, 7);
    const std::string now = parameters.fingerprint();
    const auto found = known.find(preset->name);
    EXPECT_TRUE(found != known.end() && found->second == now) << "      {\"" << preset->name << "\", \"" << now << "\"},";
  }
  EXPECT_EQ(known.size(), presets().size());
}

template <class T>
std::vector<double> output_at_the_start(std::string_view preset) {
  Parameters<T> parameters;
  Mixer<T> mixer(build_mixer(preset, {.width = 64}), parameters, "");
  initialise(parameters, 7);
  std::vector<T> x(20 * 64);
  Rng rng(8);
  for (T& value : x) value = T(float(rng.normal()));
  Context context(1);
  Tape<T> tape(context, Record::no);
  const View<T, 4> y = mixer.forward(tape, tape.input(contiguous(x.data(), {1, 20, 1, 64}))).value;
  return {y.data, y.data + y.size()};
}

// The sums of the law are about 1e-4 here: beside the constant 1/2 of a sigmoid they would keep three digits.
TEST(MetaLa, KeepsItsDigitsInFloat) {
  const std::vector<double> want = output_at_the_start<double>("metala"), got = output_at_the_start<float>("metala");
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  EXPECT_LE(worst, 1e-5 * largest);
}

}  // namespace
}  // namespace isomer
