#pragma once
// Loops over rows that the chunk forms share. For the translation units of one Isa; include vec_<isa>.h first.
#include "isomer/laws/chunk_rows.h"
#include "isomer/simd/vec.h"

namespace isomer::chunk {

/// f(i, n) for every vector of n lanes from i on; n is the constant `lanes` but for the last.
template <class V, class F>
ISOMER_INLINE void each_vector(Index count, F f) {
  Index i = 0;
  for (; i + V::lanes <= count; i += V::lanes) f(i, V::lanes);
  if (i < count) f(i, count - i);
}

template <class T, Isa I>
ISOMER_INLINE T dot(const T* a, const T* b, Index n) {
  using V = simd::Vec<T, I>;
  // Two sums: one would wait for its own last addition.
  V even = V::zero(), odd = V::zero();
  Index i = 0;
  for (; i + 2 * V::lanes <= n; i += 2 * V::lanes) {
    even = fma(V::load(a + i), V::load(b + i), even);
    odd = fma(V::load(a + i + V::lanes), V::load(b + i + V::lanes), odd);
  }
  // A closure would hold the sums in memory.
  for (; i < n; i += V::lanes) even = fma(V::load(a + i, n - i), V::load(b + i, n - i), even);
  return sum(even + odd);
}

/// y = a·x (+ y)
template <class T, Isa I, bool add = false>
ISOMER_INLINE void scaled(T a, const T* x, T* y, Index n) {
  using V = simd::Vec<T, I>;
  const V f = V::set(a);
  each_vector<V>(n, [&](Index i, Index m) {
    const V ax = f * V::load(x + i, m);
    (add ? ax + V::load(y + i, m) : ax).store(y + i, m);
  });
}

/// A row, less `mean` unless that is null.
template <class T, Isa I>
ISOMER_INLINE void copy_row(const T* from, const T* mean, T* to, Index count) {
  using V = simd::Vec<T, I>;
  if (mean == nullptr)
    each_vector<V>(count, [&](Index i, Index n) { V::load(from + i, n).store(to + i, n); });
  else
    each_vector<V>(count, [&](Index i, Index n) { (V::load(from + i, n) - V::load(mean + i, n)).store(to + i, n); });
}

/// Prefetches the rows of `ahead`, a few lines at each call: spread over the matrix products of a chunk they cost nothing, in one
/// burst they would wait for each other.
template <class T, Isa I>
struct Prefetch {
  static constexpr Index line = 64 / sizeof(T);
  // The fewest with which the tiles of a chunk's matrix products prefetch all of it, however wide a tile is: with vectors of 256
  // bits 3 rows of 64 floats.
  static constexpr Index lines_at_once = simd::Vec<T, I>::lanes > 8 ? 32 : 16;
  const PrefetchList<T>& ahead;
  Index at_once = lines_at_once;
  int block = 0;
  Index row = 0;

  ISOMER_INLINE void operator()() {
    for (Index lines = 0; lines < at_once && block < ahead.count;) {
      const auto& b = ahead.blocks[block];
      const T* p = b.data + row * b.stride;
      // Into L2: by the time it is needed, L1 has held other things.
      for (Index c = 0; c < b.width; c += line) __builtin_prefetch(p + c, 0, 2);
      lines += (b.width + line - 1) / line;
      if (++row < b.rows) continue;
      row = 0;
      ++block;
    }
  }
};

/// All of `ahead` in so many calls.
template <class T, Isa I>
ISOMER_INLINE Prefetch<T, I> spread(const PrefetchList<T>& ahead, Index calls) {
  Index lines = 0;
  for (int b = 0; b < ahead.count; ++b) lines += ahead.blocks[b].rows * ceil_div(ahead.blocks[b].width, Prefetch<T, I>::line);
  return {ahead, ceil_div(lines, calls)};
}

}  // namespace isomer::chunk
