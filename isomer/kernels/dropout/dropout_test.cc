#include "isomer/kernels/dropout/dropout.h"

#include <gtest/gtest.h>

#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"

namespace isomer {
namespace {

TEST(Dropout, KeepsWhatTheStreamOfItsSeedSays) {
  constexpr Index R = 200, D = 13;
  const DropoutOptions options{.rate = 0.25, .seed = 0x1234567890ABCDEF, .stream = 0xFEDCBA0987654321};
  for (const int threads : {1, 3}) {
    Context context(threads);
    std::vector<float> x(R * D, 3.0f), y(R * D);
    dropout<float>(options, contiguous<const float>(x.data(), {2, R / 4, 2, D}), contiguous(y.data(), {2, R / 4, 2, D}),
                   Accumulate::set, context);
    Rng rng(options.seed, options.stream);
    for (const float got : y) EXPECT_EQ(got, rng.bits() >= 0x40000000u ? 3.0f / 0.75f : 0.0f);
  }
}

TEST(Dropout, ReadsAndAddsToAnyStrides) {
  constexpr Index R = 70, D = 5;
  Context context(1);
  std::vector<double> x(R * D), dense(R * D), strided(R * D * 2, 1.0);
  Rng rng(1);
  for (double& v : x) v = rng.normal();
  const DropoutOptions options{.rate = 0.5, .seed = 7};
  const View<const double, 4> in = contiguous<const double>(x.data(), {1, R, 1, D});
  dropout<double>(options, in, contiguous(dense.data(), {1, R, 1, D}), Accumulate::set, context);
  dropout<double>(options, in, {strided.data(), {1, R, 1, D}, {0, 2 * D, 0, 2}}, Accumulate::add, context);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    EXPECT_EQ(strided[2 * i], dense[i] + 1);
    EXPECT_EQ(strided[2 * i + 1], 1);
  }
}

TEST(Dropout, OfAPartIsThatOfTheWhole) {
  constexpr Index R = 12, D = 7;
  Context context(1);
  std::vector<float> x(R * D, 1.0f), whole(R * D), parts(R * D);
  const auto drop = [&](Index first, Index rows, std::vector<float>& y) {
    dropout<float>({.rate = 0.5, .seed = 3, .stream = 4, .first = first * D},
                   contiguous<const float>(x.data() + first * D, {rows, 1, 1, D}),
                   contiguous(y.data() + first * D, {rows, 1, 1, D}), Accumulate::set, context);
  };
  drop(0, R, whole);
  drop(0, 5, parts);
  drop(5, R - 5, parts);
  EXPECT_EQ(parts, whole);
}

TEST(Dropout, RefusesRatesThatKeepNothing) {
  Context context(1);
  std::vector<float> x(4);
  const auto view = contiguous(x.data(), {1, 1, 1, 4});
  for (const double rate : {1.0, -0.1, 2.0})
    EXPECT_THROW(dropout<float>({.rate = rate}, view, view, Accumulate::set, context), Error);
}

}  // namespace
}  // namespace isomer
