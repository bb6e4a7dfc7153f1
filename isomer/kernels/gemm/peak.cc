#include "isomer/kernels/gemm/peak.h"

#include <algorithm>

#include "isomer/base/buffer.h"
#include "isomer/base/stopwatch.h"
#include "isomer/kernels/gemm/gemm.h"

namespace isomer {

double measure_peak(Context& context) {
  // One block of depth, so that C passes once: the shape at which the product is fastest.
  constexpr Index M = 1536, N = 1024, K = 384;
  constexpr double kSeconds = 0.25;
  const Buffer<float> a(M * K), b(K * N), c(M * N);
  std::fill(a.begin(), a.end(), 0.5f);
  std::fill(b.begin(), b.end(), 0.25f);
  double best = 0;
  const Stopwatch all;
  do {
    const Stopwatch one;
    matmul(contiguous(a.data(), {M, K}), contiguous(b.data(), {K, N}), contiguous(c.data(), {M, N}), context);
    best = std::max(best, 2.0 * double(M) * double(N) * double(K) / one.seconds() * 1e-9);
  } while (all.seconds() < kSeconds);
  return best;
}

}  // namespace isomer
