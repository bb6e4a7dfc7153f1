// Times one backend of the product of matrices over a table of shapes: what docs/decisions/0001-gemm.md is made from.
// Built by bench/gemm_backends, once a backend: -DBACKEND_ISOMER, _CBLAS (OpenBLAS, BLIS) or _DNNL.
//   usage: PROGRAM THREADS     prints "shape GFLOP/s", the best of the repetitions
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#ifdef BACKEND_ISOMER
#include "isomer/kernels/gemm/gemm.h"
#endif
#ifdef BACKEND_CBLAS
#include <cblas.h>
#endif
#ifdef BACKEND_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

namespace {

struct Shape {
  const char* name;
  long M, N, K;
  bool transpose_a, transpose_b;
};
constexpr Shape kShapes[] = {
    {"64x64x64", 64, 64, 64, false, false},
    {"128x128x128", 128, 128, 128, false, false},
    {"256x256x256", 256, 256, 256, false, false},
    {"1024x1024x1024", 1024, 1024, 1024, false, false},
    {"4096x256x256", 4096, 256, 256, false, false},
    {"4096x1024x256", 4096, 1024, 256, false, false},
    {"4096x256x1024", 4096, 256, 1024, false, false},
    {"4096x1024x256 B transposed", 4096, 1024, 256, false, true},
    {"1024x256x4096 A transposed", 1024, 256, 4096, true, false},
    {"1021x1021x1021", 1021, 1021, 1021, false, false},
    {"8192x8192x256", 8192, 8192, 256, false, false},
};

struct Backend {
  int threads;
#ifdef BACKEND_ISOMER
  isomer::Context context{threads};
#endif
  void operator()(const Shape& s, const float* a, const float* b, float* c) {
#ifdef BACKEND_ISOMER
    using isomer::contiguous;
    using isomer::transposed;
    const isomer::View<const float, 2> x = s.transpose_a ? transposed(contiguous(a, {s.K, s.M})) : contiguous(a, {s.M, s.K});
    const isomer::View<const float, 2> y = s.transpose_b ? transposed(contiguous(b, {s.N, s.K})) : contiguous(b, {s.K, s.N});
    isomer::matmul(x, y, contiguous(c, {s.M, s.N}), context);
#endif
#ifdef BACKEND_CBLAS
    cblas_sgemm(CblasRowMajor, s.transpose_a ? CblasTrans : CblasNoTrans, s.transpose_b ? CblasTrans : CblasNoTrans, int(s.M),
                int(s.N), int(s.K), 1.0f, a, int(s.transpose_a ? s.M : s.K), b, int(s.transpose_b ? s.K : s.N), 0.0f, c,
                int(s.N));
#endif
#ifdef BACKEND_DNNL
    dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.M, s.N, s.K, 1.0f, a, s.transpose_a ? s.M : s.K, b,
               s.transpose_b ? s.K : s.N, 0.0f, c, s.N);
#endif
  }
};

double wall() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// One thread is timed by the processor time it took, which other programs on the machine disturb less.
double seconds(int threads) { return threads == 1 ? double(std::clock()) / CLOCKS_PER_SEC : wall(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Backend backend{std::atoi(argv[1])};
  for (const Shape& s : kShapes) {
    std::vector<float> a(std::size_t(s.M * s.K)), b(std::size_t(s.K * s.N)), c(std::size_t(s.M * s.N));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i % 13) - 6;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(i % 11) - 5;
    const double flops = 2.0 * double(s.M) * double(s.N) * double(s.K);
    const long inner = long(2e7 / flops) + 1;  // a sample of at least 0.2 ms
    double best = 1e30;
    const double end = wall() + 0.4;
    for (int sample = 0; sample < 3 || wall() < end; ++sample) {
      const double start = seconds(backend.threads);
      for (long i = 0; i < inner; ++i) backend(s, a.data(), b.data(), c.data());
      const double time = (seconds(backend.threads) - start) / double(inner);
      if (time < best) best = time;
    }
    std::printf("%s\t%.1f\n", s.name, flops / best * 1e-9);
  }
}
