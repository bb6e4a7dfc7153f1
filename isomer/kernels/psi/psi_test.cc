#include "isomer/kernels/psi/psi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"

namespace isomer {
namespace {

/// The networks, their parameters drawn.
template <class T>
struct Networks {
  Index L, J, G;
  std::vector<T> w1, b1, w2, b2;

  Networks(Index outputs, Index hidden, Index groups) : L(outputs), J(hidden), G(groups) {
    Rng rng(5);
    for (auto [p, size] : {std::pair{&w1, G * J}, {&b1, G * J}, {&w2, L * J}, {&b2, L}})
      for (Index i = 0; i < size; ++i) p->push_back(T(rng.normal()));
  }
  [[nodiscard]] PsiParameters<T> parameters() const {
    return {contiguous(w1.data(), {G, J}), contiguous(b1.data(), {G, J}), contiguous(w2.data(), {L, J}),
            contiguous(b2.data(), {1, L})};
  }
  /// ψ_l(u) as it is written, and the sum of its terms' sizes.
  [[nodiscard]] std::pair<double, double> at(double u, Index l, PsiOptions options) const {
    const auto p = parameters();
    const Index g = G == 1 ? 0 : l;
    double z = double(p.b2(0, l)), size = std::abs(z);
    for (Index j = 0; j < J; ++j) {
      const double a = double(p.w1(g, j)) * u + double(p.b1(g, j));
      z += double(p.w2(l, j)) * std::max(a, 0.0);
      size += std::abs(double(p.w2(l, j))) * (std::abs(double(p.w1(g, j)) * u) + std::abs(double(p.b1(g, j))));
    }
    return {options.positive ? std::max(z, 0.0) + options.floor : z, size};
  }
};

template <class T>
void expect_table_is_the_network(Index L, Index J, Index G, PsiOptions options) {
  Context context(2);
  Networks<T> net(L, J, G);
  if (J > 2) {
    net.w1[1] = 0;  // no corner
    net.b1[2] = net.b1[0];
    net.w1[2] = net.w1[0];  // the same corner twice
  }
  constexpr Index M = 3, R = 50;
  Rng rng(7);
  std::vector<T> u(R * M), y(std::size_t(R * M * L));
  for (T& x : u) x = T(3 * rng.normal());
  u[0] = T(1e6), u[1] = T(-1e6), u[2] = T(0);
  const Workspace::Scope scope(context.workspace());
  const PsiTable<T> table = psi_table<T>(net.parameters(), context.workspace());
  psi<T>(table, options, contiguous<const T>(u.data(), {1, R, 1, M}), contiguous(y.data(), {1, R, 1, M * L}), context);
  for (Index i = 0; i < R * M; ++i)
    for (Index l = 0; l < L; ++l) {
      const auto [want, size] = net.at(double(u[std::size_t(i)]), l, options);
      EXPECT_NEAR(double(y[std::size_t(i * L + l)]), want, 4 * double(std::numeric_limits<T>::epsilon()) * size) << i << " " << l;
    }
}

TEST(Psi, TableIsTheNetwork) {
  for (const Index J : {0, 1, 5, 64})
    for (const Index G : {1, 3})
      for (const bool positive : {false, true}) {
        expect_table_is_the_network<float>(3, J, G, {.positive = positive});
        expect_table_is_the_network<double>(3, J, G, {.positive = positive});
      }
}

TEST(Psi, NaNStaysInItsPlace) {
  Context context(1);
  const Networks<float> net(2, 5, 2);
  std::vector<float> u = {std::nanf(""), 1}, y(4);
  const Workspace::Scope scope(context.workspace());
  psi<float>(psi_table<float>(net.parameters(), context.workspace()), {}, contiguous<const float>(u.data(), {1, 1, 1, 2}),
             contiguous(y.data(), {1, 1, 1, 4}), context);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_TRUE(std::isfinite(y[2]) && std::isfinite(y[3]));
}

TEST(Psi, GradientsDoNotDependOnTheNumberOfThreads) {
  const Networks<float> net(4, 64, 1);
  constexpr Index R = 3000, M = 8, L = 4, J = 64;
  Rng rng(7);
  std::vector<float> u(R * M), dy(R * M * L);
  for (float& x : u) x = float(rng.normal());
  for (float& x : dy) x = float(rng.normal());
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 7}) {
    Context context(threads);
    const Workspace::Scope scope(context.workspace());
    std::vector<float> all(R * M + J + J + L * J + L);
    float* at = all.data();
    const auto next = [&](Index size) { return std::exchange(at, at + size); };
    psi_vjp<float>(psi_table<float>(net.parameters(), context.workspace()), net.parameters(), {},
                   contiguous<const float>(u.data(), {1, R, 1, M}), contiguous<const float>(dy.data(), {1, R, 1, M * L}),
                   {.du = contiguous(next(R * M), {1, R, 1, M}),
                    .dw1 = contiguous(next(J), {1, J}),
                    .db1 = contiguous(next(J), {1, J}),
                    .dw2 = contiguous(next(L * J), {L, J}),
                    .db2 = contiguous(next(L), {1, L})},
                   context);
    results.push_back(std::move(all));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Psi, RefusesParametersThatDoNotFit) {
  Context context(1);
  const Networks<float> net(3, 5, 2);
  EXPECT_THROW((void)psi_table<float>(net.parameters(), context.workspace()), Error);
}

}  // namespace
}  // namespace isomer
