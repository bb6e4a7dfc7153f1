#pragma once
// The rows of norm over Vec; include vec_<isa>.h first.
#include "isomer/kernels/norm/norm_kernels.h"
#include "isomer/simd/vec.h"

namespace isomer {

namespace internal {

/// x̂ = (x − mean) · scale of a few rows. Their sums, roots and divisions are under way together; a short row alone would wait for
/// each of its own. The mean is kept in memory: a short load of it has zeros where a short load of x has.
template <class T, Isa I>
struct RowStatistics {
  using V = simd::Vec<T, I>;
  // Rows at a time, at least a vector; and their numbers, so that they stay in L1 from pass to pass.
  static constexpr Index kRows = 16, kNumbers = 4096;
  Index D, count;
  const T* x[kRows];
  T mean[kRows * V::lanes], scale[kRows];
  bool small[kRows];  // an L2 row within eps of zero

  /// Of rows from `first` on, before `end`.
  ISOMER_INLINE RowStatistics(const NormJob<T>& job, Rows<const T> rows, Index first, Index end)
      : D(job.D), count(end - first < at_once(job.D) ? end - first : at_once(job.D)) {
    T totals[kRows];
    for (Index i = 0; i < count; ++i) {
      x[i] = rows.row(first + i);
      V sums = V::zero();
      if (job.options.kind == Norm::layer)
        for (Index d = 0; d < D; d += V::lanes) sums = sums + V::load(x[i] + d, D - d);
      V::set(sum(sums) / T(D)).store(mean + i * V::lanes);
    }
    for (Index i = 0; i < count; ++i) {
      V squares = V::zero();
      for (Index d = 0; d < D; d += V::lanes) {
        const V c = centred(i, d);
        squares = fma(c, c, squares);
      }
      totals[i] = sum(squares);
    }
    const T eps = T(job.options.eps);
    const bool l2 = job.options.kind == Norm::l2;
    for (Index i = 0; i < count; i += V::lanes) {
      const V total = V::load(totals + i, count - i);
      sqrt(l2 ? total : total / V::set(T(D)) + V::set(eps)).store(scale + i, count - i);
    }
    for (Index i = 0; i < count; ++i) {
      small[i] = l2 && !(scale[i] > eps);
      scale[i] = T(1) / (small[i] ? eps : scale[i]);
    }
  }
  static ISOMER_INLINE Index at_once(Index D) { return D * kRows <= kNumbers ? kRows : D < kNumbers ? kNumbers / D : 1; }
  [[nodiscard]] ISOMER_INLINE V centred(Index i, Index d) const {
    return V::load(x[i] + d, D - d) - V::load(mean + i * V::lanes, D - d);
  }
  [[nodiscard]] ISOMER_INLINE V normalised(Index i, Index d) const { return centred(i, d) * V::set(scale[i]); }
};

}  // namespace internal

template <class T, Isa I>
void NormKernels<T, I>::forward(const NormJob<T>& job, Rows<const T> x, Rows<T> y, RowRange range) noexcept {
  using V = simd::Vec<T, I>;
  const Index D = job.D;
  for (Index first = range.begin, count; first < range.end; first += count) {
    const internal::RowStatistics<T, I> s(job, x, first, range.end);
    count = s.count;
    for (Index i = 0; i < count; ++i) {
      T* yr = y.row(first + i);
      const Index head = (first + i) % job.heads * D;
      for (Index d = 0; d < D; d += V::lanes) {
        V out = s.normalised(i, d);
        if (job.weight != nullptr) out = out * V::load(job.weight + head + d, D - d);
        if (job.bias != nullptr) out = out + V::load(job.bias + head + d, D - d);
        out.store(yr + d, D - d);
      }
    }
  }
}

/// With g = dy · weight:  dx = scale · (g − mean g [layer] − x̂ · c), c = mean g x̂ (rms, layer), Σ g x̂ (l2), 0 (small).
template <class T, Isa I>
void NormKernels<T, I>::backward(const NormJob<T>& job, Rows<const T> x, Rows<const T> dy, Rows<T> dx, T* dweight, T* dbias,
                                 RowRange range) noexcept {
  using V = simd::Vec<T, I>;
  using Statistics = internal::RowStatistics<T, I>;
  const Index D = job.D;
  const bool l2 = job.options.kind == Norm::l2, add = job.accumulate_x == Accumulate::add;
  for (Index first = range.begin, count; first < range.end; first += count) {
    const Statistics s(job, x, first, range.end);
    count = s.count;
    const auto weighted = [&](const T* dyr, Index head, Index d) {
      const V g = V::load(dyr + d, D - d);
      return job.weight == nullptr ? g : g * V::load(job.weight + head + d, D - d);
    };
    const T* dy_rows[Statistics::kRows];
    T along_rows[Statistics::kRows], sum_rows[Statistics::kRows];
    for (Index i = 0; i < count; ++i) {
      const T* dyr = dy_rows[i] = dy.row(first + i);
      const Index head = (first + i) % job.heads * D;
      V along = V::zero(), sums = V::zero();
      for (Index d = 0; d < D; d += V::lanes) {
        const V normalised = s.normalised(i, d), up = V::load(dyr + d, D - d), g = weighted(dyr, head, d);
        along = fma(g, normalised, along);
        sums = sums + g;
        if (dweight != nullptr) fma(up, normalised, V::load(dweight + head + d, D - d)).store(dweight + head + d, D - d);
        if (dbias != nullptr) (up + V::load(dbias + head + d, D - d)).store(dbias + head + d, D - d);
      }
      along_rows[i] = sum(along), sum_rows[i] = sum(sums);
    }
    for (Index i = 0; i < count && dx.data != nullptr; ++i) {
      const V c = V::set(s.small[i] ? T(0) : l2 ? along_rows[i] : along_rows[i] / T(D));
      const V mean = V::set(job.options.kind == Norm::layer ? sum_rows[i] / T(D) : T(0)), scale = V::set(s.scale[i]);
      T* dxr = dx.row(first + i);
      const Index head = (first + i) % job.heads * D;
      for (Index d = 0; d < D; d += V::lanes) {
        const V value = scale * fnma(s.normalised(i, d), c, weighted(dy_rows[i], head, d) - mean);
        (add ? value + V::load(dxr + d, D - d) : value).store(dxr + d, D - d);
      }
    }
  }
}

}  // namespace isomer
