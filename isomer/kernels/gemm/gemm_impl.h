#pragma once
// The parts of gemm that exist once for each instruction set; their definitions need vec_<isa>.h, included first.
#include "isomer/kernels/gemm/gemm_kernels.h"
#include "isomer/kernels/gemm/tile_impl.h"

namespace isomer::gemm {

template <class T, Isa I>
void pack_rows(Index rows, Index depth, Matrix<T> a, T alpha, T* dst, Index stride) noexcept {
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
  if (alpha != T(1)) pack_rows<T, I>(rows, depth, Matrix<T>{dst, stride, 1}, alpha, dst, stride);
}

template <class T, Isa I>
void pack_columns(Index depth, Index columns, Matrix<T> b, T* dst) noexcept {
  constexpr Index width = kTileColumns<T, I>;
  if (b.column == 1) return pack<T, I>(depth, columns, b.data, b.row, dst, depth * width);
  if (b.row == 1) return pack_transposed<T, I>(columns, depth, b.data, b.column, dst);
  for (Index j = 0; j < columns; j += width)
    for (Index p = 0; p < depth; ++p)
      for (Index v = 0; v < width; ++v)
        dst[j * depth + p * width + v] = j + v < columns ? b.data[p * b.row + (j + v) * b.column] : T(0);
}

template <class T, Isa I>
void multiply_packed(Index M, Index N, Index depth, Matrix<T> a, const T* b, Block<T> c) noexcept {
  constexpr Index width = kTileColumns<T, I>;
  multiply<T, I>(Full{}, M, N, depth, Strided<T>{a.data, a.row, a.column}, Panels<T>{b, width, depth * width}, c.data, c.row,
                 c.add ? Store::add : Store::set);
}

template <class T, Isa I>
void multiply_direct(Index M, Index N, Index depth, Matrix<T> a, Matrix<T> b, Block<T> c) noexcept {
  multiply<T, I>(Full{}, M, N, depth, Strided<T>{a.data, a.row, a.column}, b.data, b.row, c.data, c.row,
                 c.add ? Store::add : Store::set);
}

}  // namespace isomer::gemm
