#include "isomer/kernels/local/local.h"

#include <gtest/gtest.h>

#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"

namespace isomer {
namespace {

std::vector<double> draw(Index size, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> x(std::size_t(size), 0);
  for (double& v : x) v = rng.normal();
  return x;
}

constexpr Index kB = 2, kT = 70, kH = 2, kD = 5;

TEST(LocalSum, IsItsEquation) {
  Context context(2);
  std::vector<double> v = draw(kB * kT * kH * kD, 1), r = draw(kB * kT * kH * 3 * kD, 2), state = draw(kB * 2 * kH * kD, 3),
                      y(v.size());
  const auto V = contiguous(v.data(), {kB, kT, kH, kD}), Y = contiguous(y.data(), {kB, kT, kH, kD});
  const auto R = contiguous(r.data(), {kB, kT, kH, 3 * kD});
  const auto S = contiguous(state.data(), {kB, 2, kH * kD});
  const std::vector<double> before = state;
  const auto B = contiguous(before.data(), {kB, 2, kH * kD});
  local_sum<double>({.v = V, .weight = R, .state = S}, {.width = 3}, {.y = Y, .state = S}, context);
  for (Index b = 0; b < kB; ++b)
    for (Index t = 0; t < kT; ++t)
      for (Index h = 0; h < kH; ++h)
        for (Index d = 0; d < kD; ++d) {
          double want = 0;
          for (Index j = 0; j < 3; ++j)
            want += R(b, t, h, j * kD + d) * (t >= j ? V(b, t - j, h, d) : B(b, 2 + t - j, h * kD + d));
          EXPECT_NEAR(Y(b, t, h, d), want, 1e-13);
        }
  for (Index b = 0; b < kB; ++b)
    for (Index i = 0; i < 2; ++i)
      for (Index c = 0; c < kH * kD; ++c) EXPECT_EQ(S(b, i, c), V(b, kT - 2 + i, c / kD, c % kD));
}

TEST(LocalSum, KeepsOldTokensInTheStateWhenFewAreNew) {
  Context context(1);
  std::vector<double> v = {5}, r = {1, 1, 1, 1}, state = {1, 2, 3}, y(1);
  local_sum<double>({.v = contiguous(v.data(), {1, 1, 1, 1}),
                     .weight = contiguous(r.data(), {1, 1, 1, 4}),
                     .state = contiguous(state.data(), {1, 3, 1})},
                    {.width = 4}, {.y = contiguous(y.data(), {1, 1, 1, 1}), .state = contiguous(state.data(), {1, 3, 1})},
                    context);
  EXPECT_EQ(y[0], 11);
  EXPECT_EQ(state, (std::vector<double>{2, 3, 5}));
}

TEST(LocalSum, OfAnImageReachesAcrossRowsAndNotAcrossItsEdge) {
  Context context(1);
  constexpr Index rows = 3, columns = 4;
  std::vector<double> v(rows * columns), r(9), y(v.size());
  v[1 * columns + 3] = 1;
  for (std::size_t j = 0; j < 9; ++j) r[j] = double(j + 1);
  local_sum<double>({.v = contiguous(v.data(), {1, rows * columns, 1, 1}), .weight = contiguous(r.data(), {1, 1, 1, 9})},
                    {.rows = rows, .columns = columns}, {.y = contiguous(y.data(), {1, rows * columns, 1, 1})}, context);
  // The lit token is the neighbour below right (tap 8) of the one above left, and so on.
  EXPECT_EQ(y, (std::vector<double>{0, 0, 9, 8, 0, 0, 6, 5, 0, 0, 3, 2}));
}

TEST(LocalSum, RefusesWhatDoesNotFit) {
  Context context(1);
  std::vector<double> v(6), r(54), y(6);
  const auto V = contiguous(v.data(), {1, 6, 1, 1}), Y = contiguous(y.data(), {1, 6, 1, 1});
  const auto R = contiguous(r.data(), {1, 6, 1, 9});
  EXPECT_THROW(local_sum<double>({.v = V, .weight = R}, {.width = 3}, {.y = Y}, context), Error);
  EXPECT_THROW(local_sum<double>({.v = V, .weight = R}, {.rows = 2, .columns = 2}, {.y = Y}, context), Error);
  EXPECT_THROW(local_sum<double>({.v = V, .weight = R}, {.width = 0}, {.y = Y}, context), Error);
}

}  // namespace
}  // namespace isomer
