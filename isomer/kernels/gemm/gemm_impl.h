#pragma once
// The parts of gemm that exist once for each instruction set; their definitions need vec_<isa>.h, included first.
#include <immintrin.h>

#include <type_traits>

#include "isomer/kernels/gemm/gemm_kernels.h"
#include "isomer/kernels/gemm/tile_impl.h"

namespace isomer::gemm {

template <class T, Isa I>
void Kernels<T, I>::pack_rows(Index rows, Index depth, Matrix<T> a, T alpha, T* dst, Index stride) noexcept {
  using V = simd::Vec<T, I>;
  if (a.column == 1) {
    for (Index i = 0; i < rows; ++i)
      for (Index p = 0; p < depth; p += V::lanes)
        (V::set(alpha) * V::load(a.data + i * a.row + p, depth - p)).store(dst + i * stride + p, depth - p);
    return;
  }
  if (a.row == 1)
    transpose<T, I>(depth, rows, a.data, a.column, dst, stride);
  else
    for (Index i = 0; i < rows; ++i)
      for (Index p = 0; p < depth; ++p) dst[i * stride + p] = a.data[i * a.row + p * a.column];
  if (alpha != T(1)) pack_rows(rows, depth, Matrix<T>{dst, stride, 1}, alpha, dst, stride);
}

/// Called after every tile: prefetches so many rows of what is read next.
template <class T, Isa I>
struct Fetch {
  Next<T> next;
  Index at_once, row = 0;
  ISOMER_INLINE void operator()() {
    const Index end = row + at_once < next.rows ? row + at_once : next.rows;
    for (; row < end; ++row)
      for (Index c = 0; c < next.width; c += Index(64 / sizeof(T))) __builtin_prefetch(next.data + row * next.stride + c, 0, 2);
  }
};

template <class T, Isa I, class Product>
void multiply_packed(Index M, Index N, Index depth, Matrix<T> a, const T* b, Block<T> c, Next<T> next) noexcept {
  constexpr Index width = kTileColumns<T, I>;
  Fetch<T, I> fetch{next, ceil_div(next.rows, ceil_div(M, kRowsOf<Large, I>) * ceil_div(N, width))};
  gemm::multiply<T, I, Product>(Large{}, M, N, depth, Strided<T>{a.data, a.row, a.column}, Panels<T>{b, width, depth * width},
                                c.data, c.row, c.add ? Store::add : Store::set, fetch);
}

template <class T, Isa I>
void Kernels<T, I>::multiply_packed(Index M, Index N, Index depth, Matrix<T> a, const T* b, Block<T> c, Next<T> next) noexcept {
  gemm::multiply_packed<T, I, Numbers>(M, N, depth, a, b, c, next);
}

template <class T, Isa I>
void Kernels<T, I>::multiply_direct(Index M, Index N, Index depth, Matrix<T> a, Matrix<T> b, Block<T> c) noexcept {
  gemm::multiply<T, I>(Full{}, M, N, depth, Strided<T>{a.data, a.row, a.column}, b.data, b.row, c.data, c.row,
                       c.add ? Store::add : Store::set);
}

template <class T, Isa I>
void Kernels<T, I>::add_row(Index M, Index N, const T* row, Block<T> c) noexcept {
  using V = simd::Vec<T, I>;
  for (Index i = 0; i < M; ++i)
    for (Index j = 0; j < N; j += V::lanes) {
      T* to = c.data + i * c.row + j;
      (V::load(to, N - j) + V::load(row + j, N - j)).store(to, N - j);
    }
}

template <class T, Isa I>
T Kernels<T, I>::total(Index n, const T* x) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index kSums = 4, kStep = kSums * V::lanes;
  V sums[kSums] = {V::zero(), V::zero(), V::zero(), V::zero()};
  Index i = 0;
  for (; i + kStep <= n; i += kStep)
#pragma GCC unroll 4
    for (Index s = 0; s < kSums; ++s) sums[s] = sums[s] + V::load(x + i + s * V::lanes);
  for (; i < n; i += V::lanes) sums[0] = sums[0] + V::load(x + i, n - i);
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Numbers of a weight as a vector, all lanes or the first n.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const T* p) noexcept {
  return simd::Vec<T, I>::load(p);
}
template <class U, Index count>
struct Lanes {
  typedef U type __attribute__((vector_size(count * sizeof(U))));  // NOLINT(modernize-use-using): an alias loses the attribute
};
/// The bits of numbers, rounded to bf16 in the upper halves, zeros in the lower ones.
template <Isa I>
ISOMER_INLINE auto rounded_bits(simd::Vec<float, I> x) noexcept {
  using Whole = typename Lanes<std::uint32_t, simd::Vec<float, I>::lanes>::type;
  const Whole bits = __builtin_bit_cast(Whole, x);
  // As to_bf16(): rounding could carry a NaN over into infinity.
  const Whole nan = Whole((bits & 0x7fffffffU) > 0x7f800000U);
  return ((nan & (bits | 0x400000U)) | (~nan & (bits + 0x7fffU + (bits >> 16 & 1U)))) & 0xffff0000U;
}
/// bfloat16 is the upper half of a float.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const Bf16* p) noexcept {
  using V = simd::Vec<T, I>;
  if constexpr (I == Isa::avx512) {
    // GCC 12 widens a vector of the compiler's own in five instructions.
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return __builtin_bit_cast(V, _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, half), 16));
  } else {
    using Whole = typename Lanes<std::uint32_t, V::lanes>::type;
    typename Lanes<std::uint16_t, V::lanes>::type half;
    __builtin_memcpy(&half, p, sizeof half);
    const Whole bits = __builtin_convertvector(half, Whole) << 16;
    return __builtin_bit_cast(V, bits);
  }
}
/// Half precision: one instruction widens a vector of it.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const F16* p) noexcept {
  using V = simd::Vec<T, I>;
  if constexpr (I == Isa::scalar) {
    return V::set(to_float(*p));
  } else {
    typename Lanes<short, V::lanes>::type half;
    __builtin_memcpy(&half, p, sizeof half);
    if constexpr (V::lanes == 8) {
      return __builtin_bit_cast(V, __builtin_ia32_vcvtph2ps256(half));
    } else {
      // All lanes, in the usual rounding, which widening does not need.
      using Whole = typename Lanes<T, V::lanes>::type;
      return __builtin_bit_cast(V, __builtin_ia32_vcvtph2ps512_mask(half, Whole{}, short(-1), 4));
    }
  }
}
template <class T, Isa I, class W>
ISOMER_INLINE simd::Vec<T, I> load(const W* p, Index n) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  if constexpr (std::is_same_v<T, W>) {
    return simd::Vec<T, I>::load(p, n);
  } else {
    if (n >= lanes) return load<T, I>(p);
    W first[lanes] = {};
    for (Index i = 0; i < n; ++i) first[i] = p[i];
    return load<T, I>(first);
  }
}

template <Isa I>
void Rounding<I>::round(Index n, const float* x, float* dst) noexcept {
  using V = simd::Vec<float, I>;
  for (Index i = 0; i < n; i += V::lanes) __builtin_bit_cast(V, rounded_bits<I>(V::load(x + i, n - i))).store(dst + i, n - i);
}

/// n numbers of a column of B from row p on, or of its transpose.
template <class T, class W, Isa I>
ISOMER_INLINE simd::Vec<T, I> load_column(Matrix<W> b, Index p, Index j, Index n) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  const W* from = b.data + p * b.row + j * b.column;
  if (b.row == 1) return load<T, I>(from, n);
  W first[lanes] = {};
  for (Index i = 0; i < lanes && i < n; ++i) first[i] = from[i * b.row];
  return load<T, I>(first);
}

/// Squares of as many numbers as a vector has, widened as columns and turned into rows of the panels.
template <class T, class W, Isa I>
void widen_columns(Index depth, Index columns, Matrix<W> b, T* dst) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index width = kTileColumns<T, I>;
  T square[V::lanes * V::lanes], turned[V::lanes * V::lanes];
  for (Index j = 0; j < round_up(columns, width); j += V::lanes)
    for (Index p = 0; p < depth; p += V::lanes) {
      const Index rows = depth - p < V::lanes ? depth - p : V::lanes;
      for (Index c = 0; c < V::lanes; ++c)
        (j + c < columns ? load_column<T, W, I>(b, p, j + c, rows) : V::zero()).store(square + c * V::lanes);
      T* to = dst + j / width * width * depth + p * width + j % width;
      if (rows == V::lanes) {
        V::transpose(square, V::lanes, to, width);
        continue;
      }
      V::transpose(square, V::lanes, turned, V::lanes);
      for (Index i = 0; i < rows; ++i) V::load(turned + i * V::lanes).store(to + i * width);
    }
}

template <class T, class W, Isa I>
void Reading<T, W, I>::pack_columns(Index depth, Index columns, Matrix<W> b, T* dst) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index width = kTileColumns<T, I>;
  if constexpr (!std::is_same_v<T, W>) {
    if (b.column != 1) return widen_columns<T, W, I>(depth, columns, b, dst);
    for (Index p = 0; p < depth; ++p)
      for (Index j = 0; j < round_up(columns, width); j += V::lanes) {
        T* to = dst + j / width * width * depth + p * width + j % width;
        (j < columns ? load<T, I>(b.data + p * b.row + j, columns - j) : V::zero()).store(to);
      }
  } else {
    if (b.column == 1) return pack<T, I>(depth, columns, b.data, b.row, dst, depth * width);
    if (b.row == 1) return pack_transposed<T, I>(columns, depth, b.data, b.column, dst);
    for (Index j = 0; j < columns; j += width)
      for (Index p = 0; p < depth; ++p)
        for (Index v = 0; v < width; ++v)
          dst[j * depth + p * width + v] = j + v < columns ? b.data[p * b.row + (j + v) * b.column] : T(0);
  }
}

/// a · b, both dense. Four sums cover the latency of FMA where two loads go with each.
template <class T, class W, Isa I>
ISOMER_INLINE T dot(Index depth, const T* a, const W* b) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index kSums = 4, kStep = kSums * V::lanes, kStepBytes = kStep * Index(sizeof(W));
  // Prefetchers of the machine begin anew with every page of 4 KiB: what is that far ahead is asked for.
  constexpr Index kAhead = 4096, kLine = 64;
  V sums[kSums] = {V::zero(), V::zero(), V::zero(), V::zero()};
  Index p = 0;
  for (; p + kStep <= depth; p += kStep) {
#pragma GCC unroll 4
    for (Index line = 0; line < kStepBytes; line += kLine)
      __builtin_prefetch(reinterpret_cast<const char*>(b + p) + kAhead + line, 0, 3);
#pragma GCC unroll 4
    for (Index n = 0; n < kSums; ++n) sums[n] = fma(V::load(a + p + n * V::lanes), load<T, I>(b + p + n * V::lanes), sums[n]);
  }
  for (; p < depth; p += V::lanes) sums[0] = fma(V::load(a + p, depth - p), load<T, I>(b + p, depth - p), sums[0]);
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <class T, class W, Isa I>
void Reading<T, W, I>::multiply_few(Index M, Index N, Index depth, Matrix<T> a, Matrix<W> b, T alpha, Block<T> c) noexcept {
  // A column at a time, so that memory is read as one stream: several side by side are out of step with the prefetchers.
  for (Index j = 0; j < N; ++j)
    for (Index i = 0; i < M; ++i) {
      const T value = alpha * dot<T, W, I>(depth, a.data + i * a.row, b.data + j * b.column);
      T& to = c.data[i * c.row + j];
      to = c.add ? to + value : value;
    }
}

/// What the tiles add up: both products of pairs of bf16. In assembler, which a unit without the flag for it may contain.
struct PairsOfBf16 {
  template <class V>
  static ISOMER_INLINE V add(V x, V y, V sum) noexcept {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v.raw) : "v"(x.v.raw), "v"(y.v.raw));
    return sum;
  }
};

template <Isa I>
void Pairs<I>::pack_rows(Index rows, Index depth, Matrix<float> a, float* dst, Index stride) noexcept {
  using V = simd::Vec<float, I>;
  using Half = typename Lanes<std::uint16_t, V::lanes>::type;
  const Index n = 2 * depth;
  for (Index i = 0; i < rows; ++i)
    for (Index p = 0; p < n; p += V::lanes) {
      const Half half = __builtin_convertvector(rounded_bits<I>(V::load(a.data + i * a.row + p, n - p)) >> 16, Half);
      const Index left = n - p < V::lanes ? n - p : V::lanes;
      __builtin_memcpy(reinterpret_cast<Bf16*>(dst + i * stride) + p, &half, std::size_t(left) * sizeof(Bf16));
    }
}

template <Isa I>
void Pairs<I>::pack_columns(Index depth, Index columns, Matrix<Pair> b, float* dst) noexcept {
  pack_transposed<float, I>(columns, depth, reinterpret_cast<const float*>(b.data), b.column, dst);
}

template <Isa I>
void Pairs<I>::multiply_packed(Index M, Index N, Index depth, Matrix<float> a, const float* b, Block<float> c,
                               Next<float> next) noexcept {
  gemm::multiply_packed<float, I, PairsOfBf16>(M, N, depth, a, b, c, next);
}

}  // namespace isomer::gemm
