#pragma once
// The rows of norm over Vec; include vec_<isa>.h first.
#include "isomer/kernels/norm/norm_kernels.h"
#include "isomer/simd/vec.h"

namespace isomer {

namespace internal {

/// x̂ = (x − mean) · scale. The mean is kept in memory: a short load of it has zeros where a short load of x has.
template <class T, Isa I>
struct RowStatistics {
  using V = simd::Vec<T, I>;
  Index D;
  T mean[V::lanes], scale;
  bool small;  // an L2 row within eps of zero

  ISOMER_INLINE RowStatistics(const NormJob<T>& job, const T* x) : D(job.D) {
    V sums = V::zero(), squares = V::zero();
    if (job.options.kind == Norm::layer)
      for (Index d = 0; d < D; d += V::lanes) sums = sums + V::load(x + d, D - d);
    V::set(sum(sums) / T(D)).store(mean);
    for (Index d = 0; d < D; d += V::lanes) {
      const V c = centred(x, d);
      squares = fma(c, c, squares);
    }
    const T total = sum(squares), eps = T(job.options.eps);
    const bool l2 = job.options.kind == Norm::l2;
    const T root = largest(sqrt(V::set(l2 ? total : total / T(D) + eps)));
    small = l2 && !(root > eps);
    scale = T(1) / (small ? eps : root);
  }
  [[nodiscard]] ISOMER_INLINE V centred(const T* x, Index d) const { return V::load(x + d, D - d) - V::load(mean, D - d); }
  [[nodiscard]] ISOMER_INLINE V normalised(const T* x, Index d) const { return centred(x, d) * V::set(scale); }
};

}  // namespace internal

template <class T, Isa I>
void NormKernels<T, I>::forward(const NormJob<T>& job, Rows<const T> x, Rows<T> y, RowRange range) noexcept {
  using V = simd::Vec<T, I>;
  const Index D = job.D;
  for (Index r = range.begin; r < range.end; ++r) {
    const T* xr = x.row(r);
    T* yr = y.row(r);
    const Index head = r % job.heads * D;
    const internal::RowStatistics<T, I> s(job, xr);
    for (Index d = 0; d < D; d += V::lanes) {
      V out = s.normalised(xr, d);
      if (job.weight != nullptr) out = out * V::load(job.weight + head + d, D - d);
      if (job.bias != nullptr) out = out + V::load(job.bias + head + d, D - d);
      out.store(yr + d, D - d);
    }
  }
}

/// With g = dy · weight:  dx = scale · (g − mean g [layer] − x̂ · c), c = mean g x̂ (rms, layer), Σ g x̂ (l2), 0 (small).
template <class T, Isa I>
void NormKernels<T, I>::backward(const NormJob<T>& job, Rows<const T> x, Rows<const T> dy, Rows<T> dx, T* dweight, T* dbias,
                                 RowRange range) noexcept {
  using V = simd::Vec<T, I>;
  const Index D = job.D;
  for (Index r = range.begin; r < range.end; ++r) {
    const T *xr = x.row(r), *dyr = dy.row(r);
    const Index head = r % job.heads * D;
    const internal::RowStatistics<T, I> s(job, xr);
    const auto weighted = [&](Index d) {
      const V g = V::load(dyr + d, D - d);
      return job.weight == nullptr ? g : g * V::load(job.weight + head + d, D - d);
    };
    V along = V::zero(), sums = V::zero();
    for (Index d = 0; d < D; d += V::lanes) {
      const V normalised = s.normalised(xr, d), up = V::load(dyr + d, D - d), g = weighted(d);
      along = fma(g, normalised, along);
      sums = sums + g;
      if (dweight != nullptr) fma(up, normalised, V::load(dweight + head + d, D - d)).store(dweight + head + d, D - d);
      if (dbias != nullptr) (up + V::load(dbias + head + d, D - d)).store(dbias + head + d, D - d);
    }
    if (dx.data == nullptr) continue;
    const bool l2 = job.options.kind == Norm::l2;
    const V c = V::set(s.small ? T(0) : l2 ? sum(along) : sum(along) / T(D));
    const V mean = V::set(job.options.kind == Norm::layer ? sum(sums) / T(D) : T(0)), scale = V::set(s.scale);
    T* dxr = dx.row(r);
    const bool add = job.accumulate_x == Accumulate::add;
    for (Index d = 0; d < D; d += V::lanes) {
      const V value = scale * fnma(s.normalised(xr, d), c, weighted(d) - mean);
      (add ? value + V::load(dxr + d, D - d) : value).store(dxr + d, D - d);
    }
  }
}

}  // namespace isomer
