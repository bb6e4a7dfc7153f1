#pragma once
// The parts of gemm that exist once for each instruction set; their definitions need vec_<isa>.h, included first.
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

template <class T, Isa I>
void Kernels<T, I>::pack_columns(Index depth, Index columns, Matrix<T> b, T* dst) noexcept {
  constexpr Index width = kTileColumns<T, I>;
  if (b.column == 1) return pack<T, I>(depth, columns, b.data, b.row, dst, depth * width);
  if (b.row == 1) return pack_transposed<T, I>(columns, depth, b.data, b.column, dst);
  for (Index j = 0; j < columns; j += width)
    for (Index p = 0; p < depth; ++p)
      for (Index v = 0; v < width; ++v)
        dst[j * depth + p * width + v] = j + v < columns ? b.data[p * b.row + (j + v) * b.column] : T(0);
}

template <class T, Isa I>
void Kernels<T, I>::multiply_packed(Index M, Index N, Index depth, Matrix<T> a, const T* b, Block<T> c) noexcept {
  constexpr Index width = kTileColumns<T, I>;
  gemm::multiply<T, I>(Full{}, M, N, depth, Strided<T>{a.data, a.row, a.column}, Panels<T>{b, width, depth * width}, c.data,
                       c.row, c.add ? Store::add : Store::set);
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

// Numbers of a weight as a vector, all lanes or the first n.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const T* p) noexcept {
  return simd::Vec<T, I>::load(p);
}
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const T* p, Index n) noexcept {
  return simd::Vec<T, I>::load(p, n);
}
template <class U, Index count>
struct Lanes {
  typedef U type __attribute__((vector_size(count * sizeof(U))));  // NOLINT(modernize-use-using): an alias loses the attribute
};
/// bfloat16 is the upper half of a float.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const Bf16* p) noexcept {
  using V = simd::Vec<T, I>;
  using Whole = typename Lanes<std::uint32_t, V::lanes>::type;
  typename Lanes<std::uint16_t, V::lanes>::type half;
  __builtin_memcpy(&half, p, sizeof half);
  const Whole bits = __builtin_convertvector(half, Whole) << 16;
  return __builtin_bit_cast(V, bits);
}
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load(const Bf16* p, Index n) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  if (n >= lanes) return load<T, I>(p);
  Bf16 first[lanes] = {};
  for (Index i = 0; i < n; ++i) first[i] = p[i];
  return load<T, I>(first);
}

/// c[j] = or += alpha · a · (column j of B), for `Columns` columns side by side. Two sums for each column cover the latency of
/// FMA.
template <class T, class W, Isa I, Index Columns>
ISOMER_INLINE void multiply_row(Index depth, const T* a, const W* b, Index step, T alpha, T* c, bool add) noexcept {
  using V = simd::Vec<T, I>;
  V even[Columns], odd[Columns];
  for (Index j = 0; j < Columns; ++j) even[j] = odd[j] = V::zero();
  Index p = 0;
  for (; p + 2 * V::lanes <= depth; p += 2 * V::lanes) {
    const V first = V::load(a + p), second = V::load(a + p + V::lanes);
    for (Index j = 0; j < Columns; ++j) {
      even[j] = fma(first, load<T, I>(b + j * step + p), even[j]);
      odd[j] = fma(second, load<T, I>(b + j * step + p + V::lanes), odd[j]);
    }
  }
  for (; p < depth; p += V::lanes) {
    const V first = V::load(a + p, depth - p);
    for (Index j = 0; j < Columns; ++j) even[j] = fma(first, load<T, I>(b + j * step + p, depth - p), even[j]);
  }
  for (Index j = 0; j < Columns; ++j) {
    const T value = alpha * sum(even[j] + odd[j]);
    c[j] = add ? c[j] + value : value;
  }
}

template <class T, class W, Isa I>
void FewRows<T, W, I>::multiply(Index M, Index N, Index depth, Matrix<T> a, Matrix<W> b, T alpha, Block<T> c) noexcept {
  Index j = 0;
  for (; j + 4 <= N; j += 4)
    for (Index i = 0; i < M; ++i)
      multiply_row<T, W, I, 4>(depth, a.data + i * a.row, b.data + j * b.column, b.column, alpha, c.data + i * c.row + j, c.add);
  for (; j < N; ++j)
    for (Index i = 0; i < M; ++i)
      multiply_row<T, W, I, 1>(depth, a.data + i * a.row, b.data + j * b.column, b.column, alpha, c.data + i * c.row + j, c.add);
}

}  // namespace isomer::gemm
