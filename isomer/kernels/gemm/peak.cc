#include "isomer/kernels/gemm/peak.h"

#include <algorithm>
#include <vector>

#include "isomer/base/buffer.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/kernels/gemm/gemm_kernels.h"

namespace isomer {

namespace {
constexpr double kSeconds = 0.25;
}  // namespace

double measure_peak(Context& context) {
  // One block of depth, so that C passes once: the shape at which the product is fastest.
  constexpr Index M = 1536, N = 1024, K = 384;
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

double measure_read(Context& context, Index bytes) {
  // Sums of so many numbers are exact. A task reads a long stretch of them, for every stretch begins slowly.
  constexpr Index kPiece = Index{1} << 16, kTasks = 4;
  const Index pieces = std::max<Index>(1, bytes / Index(sizeof(float)) / kPiece), tasks = kTasks * context.threads();
  const Buffer<float> numbers(pieces * kPiece), sums(pieces);
  std::fill(numbers.begin(), numbers.end(), 1.0f);
  std::vector<double> seconds;
  const Stopwatch all;
  do {
    const Stopwatch one;
    with_isa(context.isa(), [&]<Isa I>() {
      context.parallel(tasks, [&](Index task, Workspace&) {
        for (Index i = pieces * task / tasks; i < pieces * (task + 1) / tasks; ++i)
          sums[i] = gemm::Kernels<float, I>::total(kPiece, numbers.data() + i * kPiece);
      });
    });
    seconds.push_back(one.seconds());
    ISOMER_ASSERT(std::all_of(sums.begin(), sums.end(), [](float sum) { return sum == float(kPiece); }), "everything was read");
  } while (all.seconds() < kSeconds);
  const auto middle = seconds.begin() + Index(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return double(numbers.size()) * sizeof(float) / *middle * 1e-9;
}

}  // namespace isomer
