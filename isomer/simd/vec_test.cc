#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/simd/map.h"
#include "isomer/simd/probe.h"

namespace isomer::simd {
namespace {

template <class F>
void on_every_isa(F f) {
  for (const Isa isa : kIsas) {
    if (!supported(isa)) continue;
    with_isa(isa, [&]<Isa I>() {
      f.template operator()<float, I>();
      f.template operator()<double, I>();
    });
  }
}

TEST(Vec, HasTheLanesOfItsInstructionSet) {
  EXPECT_EQ((Probe<float, Isa::scalar>::lanes()), 1);
  EXPECT_EQ((Probe<double, Isa::scalar>::lanes()), 1);
  if (!supported(Isa::avx2)) GTEST_SKIP() << "no AVX2 here";
  EXPECT_EQ((Probe<float, Isa::avx2>::lanes()), 8);
  EXPECT_EQ((Probe<double, Isa::avx2>::lanes()), 4);
  if (!supported(Isa::avx512)) GTEST_SKIP() << "no AVX-512 here";
  with_isa(Isa::avx512, []<Isa I>() {
    EXPECT_EQ((Probe<float, I>::lanes()), 16);
    EXPECT_EQ((Probe<double, I>::lanes()), 8);
  });
}

/// Two pages, the second forbidden: what ends at `end` cannot be overrun unnoticed.
struct Fence {
  std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Fence() { mprotect(static_cast<char*>(memory) + page, page, PROT_NONE); }
  ~Fence() { munmap(memory, 2 * page); }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  template <class T>
  [[nodiscard]] T* end() const {
    return reinterpret_cast<T*>(static_cast<char*>(memory) + page);
  }
};

TEST(Vec, TailsTouchNothingBeyond) {
  const Fence in, out;
  on_every_isa([&]<class T, Isa I>() {
    for (Index n = 0; n <= 19; ++n) {
      T *x = in.end<T>() - n, *y = out.end<T>() - n;
      for (Index i = 0; i < n; ++i) x[i] = T(-i - 1);
      y[-1] = T(-7);
      map<T, I>(Function::abs, x, y, n);
      for (Index i = 0; i < n; ++i) EXPECT_EQ(y[i], T(i + 1));
      EXPECT_EQ(y[-1], T(-7));
    }
    // A short store leaves what follows alone.
    std::vector<T> x(32, T(-1)), y(32, T(5));
    for (Index n : {1, 3, 7, 9}) {
      map<T, I>(Function::abs, x.data(), y.data(), n);
      EXPECT_EQ(y[std::size_t(n)], T(5));
    }
  });
}

TEST(Vec, StreamsAllLanesAndNoMore) {
  on_every_isa([]<class T, Isa I>() {
    const Index n = Probe<T, I>::lanes();
    std::vector<T> from;
    for (Index i = 0; i < n; ++i) from.push_back(T(i + 1));
    alignas(64) T to[32] = {};
    Probe<T, I>::stream(from.data(), to);
    for (Index i = 0; i < 32; ++i) EXPECT_EQ(to[i], i < n ? T(i + 1) : T(0));
  });
}

TEST(Vec, CombinesLikeScalars) {
  on_every_isa([]<class T, Isa I>() {
    using P = Probe<T, I>;
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const T special[] = {T(0), T(-0.0), T(1), T(-2.5), inf, -inf, nan, std::numeric_limits<T>::denorm_min(), T(1e30)};
    const Index n = P::lanes();
    for (T a : special)
      for (T b : special) {
        const T c = T(3);
        const T fused = I == Isa::scalar ? a * b + c : std::fma(a, b, c);
        const T negative = I == Isa::scalar ? c - a * b : std::fma(-a, b, c);
        const T want[P::kResults] = {
            a + b, a - b, a * b, a / b, -a, fused, negative, a < b ? a : b, a > b ? a : b, std::copysign(a, b), a < b ? a : c};
        std::vector<T> va(std::size_t(n), a), vb(std::size_t(n), b), vc(std::size_t(n), c), out(std::size_t(n * P::kResults));
        P::combine(va.data(), vb.data(), vc.data(), out.data());
        for (Index k = 0; k < P::kResults; ++k)
          for (Index l = 0; l < n; ++l) {
            const T got = out[std::size_t(k * n + l)];
            if (std::isnan(want[k]))
              EXPECT_TRUE(std::isnan(got)) << "result " << k << " of " << a << ", " << b;
            else
              EXPECT_EQ(got, want[k]) << "result " << k << " of " << a << ", " << b;
            EXPECT_TRUE(std::isnan(got) || std::signbit(got) == std::signbit(want[k])) << "result " << k;
          }
      }
  });
}

TEST(Vec, ReducesAndTransposes) {
  on_every_isa([]<class T, Isa I>() {
    using P = Probe<T, I>;
    const Index n = P::lanes(), lds = n + 3, ldd = n + 1;
    std::vector<T> src(std::size_t(n * lds)), dst(std::size_t(n * ldd), T(-1));
    for (std::size_t i = 0; i < src.size(); ++i) src[i] = T(i);
    P::transpose(src.data(), lds, dst.data(), ldd);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) EXPECT_EQ(dst[std::size_t(j * ldd + i)], src[std::size_t(i * lds + j)]);
    for (Index i = 0; i < n; ++i) EXPECT_EQ(dst[std::size_t(i * ldd + n)], T(-1));
    std::fill(dst.begin(), dst.end(), T(-1));
    const Index side = P::transpose_side(src.data(), lds, dst.data(), ldd);
    EXPECT_EQ(n % side, 0);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        EXPECT_EQ(dst[std::size_t(j * ldd + i)], i < side && j < side ? src[std::size_t(i * lds + j)] : T(-1));
    EXPECT_EQ(P::sum(src.data()), T(n * (n - 1) / 2));
    P::sum_rows(src.data(), lds, dst.data());
    for (Index i = 0; i < n; ++i) EXPECT_EQ(dst[std::size_t(i)], T(n * (n - 1) / 2 + i * lds * n));
    EXPECT_EQ(P::largest(src.data()), T(n - 1));
  });
}

TEST(Vec, SplitsExponentsAndMakesPowers) {
  on_every_isa([]<class T, Isa I>() {
    using P = Probe<T, I>;
    Rng rng(4);
    constexpr int lowest = std::numeric_limits<T>::min_exponent - 1, highest = std::numeric_limits<T>::max_exponent - 1;
    for (int e = lowest; e <= highest; ++e) {
      const T x = std::ldexp(T(1 + rng.uniform()), e);
      std::vector<T> in(std::size_t(P::lanes()), x), mantissa(in), exponent(in);
      if (!std::isfinite(x)) continue;
      P::split(in.data(), mantissa.data(), exponent.data());
      EXPECT_EQ(std::ldexp(mantissa[0], int(exponent[0])), x);
      EXPECT_GE(mantissa[0], T(0.7071067));
      EXPECT_LT(mantissa[0], T(1.4142136));
      P::join(mantissa.data(), exponent.data(), in.data());
      EXPECT_EQ(in[0], x);
      T power = 0;
      const T n = T(e);
      map<T, I>(Function::pow2, &n, &power, 1);
      EXPECT_EQ(power, std::ldexp(T(1), e));
    }
  });
}

}  // namespace
}  // namespace isomer::simd
