#include "isomer/base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace isomer {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers published with Random123 (kat_vectors, philox4x32, 10 rounds).
TEST(Philox, GivesThePublishedWords) {
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, DependsOnSeedStreamAndPositionAlone) {
  Rng straight(5, 9), resumed(5, 9);
  std::vector<std::uint32_t> drawn(50);
  for (std::uint32_t& x : drawn) x = straight.bits();
  for (std::uint64_t i : {37, 3, 4, 0, 49}) {
    resumed.seek(i);
    EXPECT_EQ(resumed.bits(), drawn[i]);
    EXPECT_EQ(resumed.position(), i + 1);
  }
  EXPECT_NE(Rng(5, 10).bits(), drawn[0]);
  EXPECT_NE(Rng(6, 9).bits(), drawn[0]);
}

// Sample moments of n draws lie within five standard errors of the true ones.
TEST(Rng, UniformHasItsMomentsAndRange) {
  Rng rng(1);
  constexpr int n = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += (u - 0.5) * (u - 0.5);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
}

TEST(Rng, NormalHasItsMoments) {
  Rng rng(2);
  constexpr int n = 200000;
  std::array<double, 4> moment{};
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    double power = 1;
    for (double& m : moment) m += (power *= x);
  }
  // The m-th power of a standard normal has mean 0, 1, 0, 3 and variance 1, 2, 15, 96.
  constexpr std::array<double, 4> mean{0, 1, 0, 3}, variance{1, 2, 15, 96};
  for (std::size_t m = 0; m < 4; ++m) EXPECT_NEAR(moment[m] / n, mean[m], 5 * std::sqrt(variance[m] / n)) << "power " << m + 1;
}

TEST(Rng, BelowIsUniform) {
  Rng rng(3);
  constexpr int n = 70000, sides = 7;
  std::array<int, sides> count{};
  for (int i = 0; i < n; ++i) ++count[rng.below(sides)];
  for (int c : count) EXPECT_NEAR(c, double(n) / sides, 5 * std::sqrt(double(n) / sides));
  EXPECT_EQ(Rng(4).below(1), 0u);
}

TEST(Rng, StreamsAreUncorrelated) {
  Rng a(7, 0), b(7, 1);
  constexpr int n = 100000;
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a.normal() * b.normal();
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
}

}  // namespace
}  // namespace isomer
