#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/simd/map.h"

namespace isomer::simd {
namespace {

using Wide = long double;  // 64 bits of mantissa: 11 more than double

Wide sigmoid_wide(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide softplus_wide(Wide x) { return std::fmax(x, Wide(0)) + std::log1p(std::exp(-std::fabs(x))); }
Wide log_sigmoid_wide(Wide x) { return -softplus_wide(-x); }

struct Row {
  Function function;
  std::string_view name;
  Wide (*exact)(Wide);
  double lo[2], hi[2];  // the inputs tried: float, double
  double ulp[2];        // the largest error allowed
};

// The limits are the errors measured with 4 million inputs each, plus about a quarter.
constexpr Row kTable[] = {
    {Function::exp, "exp", std::exp, {-86.9, -708}, {88.7228, 709.78}, {1.5, 1.5}},
    {Function::exp_nonpositive, "exp_nonpositive", std::exp, {-86.9, -708}, {1, 1}, {1.5, 1.5}},
    {Function::exp2_nonpositive, "exp2_nonpositive", std::exp2, {-125.4, -1021.4}, {0, 0}, {1.5, 1.5}},
    {Function::expm1, "expm1", std::expm1, {-100, -800}, {88.7228, 709.78}, {1.75, 2.5}},
    {Function::log, "log", std::log, {0, 0}, {3.4e38, 1.7e308}, {1.25, 1.25}},
    {Function::log1p, "log1p", std::log1p, {-1, -1}, {3.4e38, 1.7e308}, {1.75, 1.75}},
    {Function::sigmoid, "sigmoid", sigmoid_wide, {-86.9, -708}, {100, 800}, {2.75, 2.75}},
    {Function::log_sigmoid, "log_sigmoid", log_sigmoid_wide, {-1000, -1000}, {86.9, 708}, {2.25, 2.25}},
    {Function::softplus, "softplus", softplus_wide, {-86.9, -708}, {1000, 1000}, {2.25, 2.25}},
    {Function::tanh, "tanh", std::tanh, {-100, -100}, {100, 100}, {2.75, 2.75}},
    {Function::sin, "sin", std::sin, {-8192, -1048576}, {8192, 1048576}, {2.75, 2.75}},
    {Function::cos, "cos", std::cos, {-8192, -1048576}, {8192, 1048576}, {2.75, 2.75}},
};

std::vector<Isa> isas() {
  std::vector<Isa> list;
  for (const Isa isa : kIsas)
    if (supported(isa)) list.push_back(isa);
  return list;
}

/// The error of `got` in units of the last place of the exact result.
template <class T>
double ulps(T got, Wide want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
  const T rounded = T(want);
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(std::fmax(std::fabs(want), Wide(std::numeric_limits<T>::min())), &exponent);
  return double(std::fabs(Wide(got) - want) / std::ldexp(Wide(1), exponent - std::numeric_limits<T>::digits));
}

/// Inputs in [lo, hi]: evenly spaced, and evenly spaced bit patterns (so every exponent is met), each moved at random.
template <class T>
std::vector<T> inputs(double lo, double hi, Index count) {
  Rng rng(7);
  std::vector<T> x;
  for (Index i = 0; i < count; ++i) x.push_back(T(lo + (hi - lo) * (double(i) + rng.uniform()) / double(count)));
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const T largest = T(std::fmax(std::fabs(lo), std::fabs(hi)));
  Bits top = 0;
  std::memcpy(&top, &largest, sizeof(T));
  for (Index i = 0; i < count; ++i) {
    const Bits bits = Bits(double(top) * (double(i) + rng.uniform()) / double(count));
    T value = 0;
    std::memcpy(&value, &bits, sizeof(T));
    x.push_back(value);
    x.push_back(-value);
  }
  std::vector<T> kept;
  for (T value : x)
    if (double(value) >= lo && double(value) <= hi) kept.push_back(value);
  return kept;
}

/// The largest error on each instruction set.
template <class T>
std::vector<double> worst(const Row& row, Index count) {
  constexpr int type = sizeof(T) == 4 ? 0 : 1;
  const std::vector<T> x = inputs<T>(row.lo[type], row.hi[type], count);
  std::vector<Wide> want;
  for (T value : x) want.push_back(row.exact(Wide(value)));
  std::vector<double> errors;
  for (Isa isa : isas()) {
    std::vector<T> y(x.size());
    map(row.function, x.data(), y.data(), Index(x.size()), isa);
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], want[i]);
      if (!(error <= most)) most = error;
    }
    errors.push_back(most);
  }
  return errors;
}

// Prints the table of docs/numerics.md. ISOMER_ULP_SAMPLES sets how many inputs are tried.
TEST(Math, StaysWithinTheUlpTable) {
  const char* wanted = std::getenv("ISOMER_ULP_SAMPLES");
  const Index count = wanted == nullptr ? 50000 : Index(std::atoll(wanted));
  std::printf("| function | type | range | limit |");
  for (const Isa isa : isas()) std::printf(" %.*s |", int(name_of(isa).size()), name_of(isa).data());
  std::printf("\n|---|---|---|---|%s\n", isas().size() == 3 ? "---|---|---|" : isas().size() == 2 ? "---|---|" : "---|");
  for (const Row& row : kTable)
    for (int type : {0, 1}) {
      std::printf("| %.*s | %s | [%g, %g] | %.2f |", int(row.name.size()), row.name.data(), type == 0 ? "float" : "double",
                  row.lo[type], row.hi[type], row.ulp[type]);
      for (double error : type == 0 ? worst<float>(row, count) : worst<double>(row, count)) {
        std::printf(" %.2f |", error);
        EXPECT_LE(error, row.ulp[type]) << row.name << " type " << type;
      }
      std::printf("\n");
    }
}

TEST(Math, GivesTheSameBitsOnWiderVectors) {
  if (!supported(Isa::avx512)) GTEST_SKIP() << "no AVX-512 here";
  for (const Row& row : kTable) {
    const std::vector<float> x = inputs<float>(row.lo[0], row.hi[0], 5000);
    std::vector<float> narrow(x.size()), wide(x.size());
    map(row.function, x.data(), narrow.data(), Index(x.size()), Isa::avx2);
    map(row.function, x.data(), wide.data(), Index(x.size()), Isa::avx512);
    EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), x.size() * sizeof(float)), 0) << row.name;
  }
}

struct Special {
  Function function;
  double x, y;
};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Special kSpecial[] = {
    {Function::exp, -kInf, 0},
    {Function::exp, kInf, kInf},
    {Function::exp, 0, 1},
    {Function::exp, -0.0, 1},
    {Function::exp, -1e30, 0},
    {Function::exp, 1e30, kInf},
    {Function::exp, 1e-40, 1},
    {Function::exp, -710, 0},
    {Function::exp, 710, kInf},
    {Function::exp_nonpositive, 0, 1},
    {Function::exp_nonpositive, -kInf, 0},
    {Function::expm1, -kInf, -1},
    {Function::expm1, kInf, kInf},
    {Function::expm1, 0, 0},
    {Function::expm1, -0.0, -0.0},
    {Function::expm1, -1e30, -1},
    {Function::log, 0, -kInf},
    {Function::log, -0.0, -kInf},
    {Function::log, 1, 0},
    {Function::log, kInf, kInf},
    {Function::log, -1, NAN},
    {Function::log, -kInf, NAN},
    {Function::log1p, 0, 0},
    {Function::log1p, -0.0, -0.0},
    {Function::log1p, -1, -kInf},
    {Function::log1p, kInf, kInf},
    {Function::log1p, -2, NAN},
    {Function::log1p, -kInf, NAN},
    {Function::sigmoid, -kInf, 0},
    {Function::sigmoid, kInf, 1},
    {Function::sigmoid, 0, 0.5},
    {Function::log_sigmoid, kInf, 0},
    {Function::log_sigmoid, -kInf, -kInf},
    {Function::log_sigmoid, -1e4, -1e4},
    {Function::softplus, -kInf, 0},
    {Function::softplus, kInf, kInf},
    {Function::softplus, 1e4, 1e4},
    {Function::tanh, kInf, 1},
    {Function::tanh, -kInf, -1},
    {Function::tanh, 0, 0},
    {Function::tanh, -0.0, -0.0},
    {Function::sin, 0, 0},
    {Function::cos, 0, 1},
    {Function::sin, kInf, NAN},
    {Function::cos, -kInf, NAN},
    {Function::sin, 1e7, NAN},
    {Function::cos, -1e7, NAN},
    {Function::sqrt, -1, NAN},
    {Function::sqrt, 4, 2},
    {Function::abs, -0.0, 0.0},
    {Function::abs, -kInf, kInf},
    {Function::round_even, 2.5, 2},
    {Function::round_even, -3.5, -4},
    {Function::round_even, 0.49999997, 0},
    {Function::pow2, -126, 0x1p-126},
    {Function::pow2, 127, 0x1p127},
    {Function::pow2, 0, 1},
};

template <class T>
T at(Function f, T x, Isa isa) {
  T y = T(-77);
  map(f, &x, &y, 1, isa);
  return y;
}

template <class T>
void expect_special_values() {
  for (Isa isa : isas()) {
    for (const Special& s : kSpecial) {
      const T got = at(s.function, T(s.x), isa);
      if (std::isnan(s.y)) {
        EXPECT_TRUE(std::isnan(got)) << int(s.function) << " of " << s.x << " on " << name_of(isa);
      } else {
        EXPECT_EQ(got, T(s.y)) << int(s.function) << " of " << s.x << " on " << name_of(isa);
        EXPECT_EQ(std::signbit(got), std::signbit(s.y)) << int(s.function) << " of " << s.x << " on " << name_of(isa);
      }
    }
    // NaN of every payload: all bits set is what fresh memory holds in the tests.
    T poison;
    std::memset(&poison, 0xFF, sizeof(T));
    for (const Row& row : kTable)
      for (T nan : {poison, std::numeric_limits<T>::signaling_NaN(), std::numeric_limits<T>::quiet_NaN()})
        EXPECT_TRUE(std::isnan(at(row.function, nan, isa))) << row.name << " on " << name_of(isa);
  }
}

TEST(Math, SpecialValuesOfFloat) { expect_special_values<float>(); }
TEST(Math, SpecialValuesOfDouble) { expect_special_values<double>(); }

TEST(Math, ExpLeavesTheNormalRangeAsDocumented) {
  for (Isa isa : isas()) {
    EXPECT_GT(at(Function::exp, -86.98f, isa), 0.0f);
    EXPECT_EQ(at(Function::exp, -87.4f, isa), 0.0f);
    EXPECT_TRUE(std::isfinite(at(Function::exp, 88.7228f, isa)));
    EXPECT_TRUE(std::isinf(at(Function::exp, 88.7229f, isa)));
    EXPECT_GT(at(Function::exp, -708.04, isa), 0.0);
    EXPECT_EQ(at(Function::exp, -708.5, isa), 0.0);
    EXPECT_TRUE(std::isfinite(at(Function::exp, 709.78, isa)));
    EXPECT_TRUE(std::isinf(at(Function::exp, 709.79, isa)));
    EXPECT_NEAR(at(Function::log, 1e-45f, isa), std::log(std::ldexp(1.0, -149)), 1e-5);  // the smallest denormal
    EXPECT_NEAR(at(Function::log, 5e-324, isa), std::log(5e-324), 1e-12);
  }
}

}  // namespace
}  // namespace isomer::simd
