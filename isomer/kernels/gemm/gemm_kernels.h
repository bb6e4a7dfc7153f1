#pragma once
// The parts of gemm that exist once for each instruction set, as gemm.cc sees them.
#include "isomer/base/bf16.h"
#include "isomer/base/cpu.h"
#include "isomer/base/f16.h"
#include "isomer/base/index.h"

namespace isomer::gemm {

/// Element (i, j) is data[i * row + j * column].
template <class T>
struct Matrix {
  const T* data;
  Index row, column;
};

/// Where a product goes: dense rows, set or added to.
template <class T>
struct Block {
  T* data;
  Index row;
  bool add;
};

/// Rows that are read next, to be asked for into L2 meanwhile.
template <class T>
struct Next {
  const T* data = nullptr;
  Index rows = 0, stride = 0, width = 0;
};

/// Two numbers of B that follow each other in depth.
struct Pair {
  Bf16 first, second;
};

/// A multiple of the width of a panel on every instruction set: columns are cut only here.
inline constexpr Index kPanelMultiple = 32;

template <class T, Isa I>
struct Kernels {
  /// dst = alpha · A [rows, depth], rows `stride` apart.
  static void pack_rows(Index rows, Index depth, Matrix<T> a, T alpha, T* dst, Index stride) noexcept;
  /// C [M, N] = or += A [M, depth] · B, with B as Reading::pack_columns left it.
  static void multiply_packed(Index M, Index N, Index depth, Matrix<T> a, const T* b, Block<T> c, Next<T> next) noexcept;
  /// The same for a B with dense rows that is small enough to stay in cache unpacked.
  static void multiply_direct(Index M, Index N, Index depth, Matrix<T> a, Matrix<T> b, Block<T> c) noexcept;
  /// C [M, N] += row [N] in every row.
  static void add_row(Index M, Index N, const T* row, Block<T> c) noexcept;
  /// The sum of x [n], whose time is that of reading it.
  static T total(Index n, const T* x) noexcept;
};

/// What reads B, with W as its type: T or, for float, Bf16 or F16, which are widened.
template <class T, class W, Isa I>
struct Reading {
  /// dst [depth · round_up(columns, kPanelMultiple)] = the panels of B [depth, columns]; column j starts at depth · j when j is
  /// a multiple of kPanelMultiple.
  static void pack_columns(Index depth, Index columns, Matrix<W> b, T* dst) noexcept;
  /// C [M, N] = or += alpha · A · B for few rows of A, which are dense, and a B with dense columns: B is read once and in place,
  /// so that the product of a vector runs at the speed of memory.
  static void multiply_few(Index M, Index N, Index depth, Matrix<T> a, Matrix<W> b, T alpha, Block<T> c) noexcept;
};

template <Isa I>
struct Rounding {
  /// dst [n] = x [n] rounded to bf16, as to_bf16().
  static void round(Index n, const float* x, float* dst) noexcept;
};

/// Products of pairs of bf16, 32 bits that are moved as floats; depths count pairs. AVX-512 alone, where it multiplies_bf16().
template <Isa I>
struct Pairs {
  /// dst [rows, depth] = A [rows, 2 · depth], which has dense rows, rounded to bf16, rows of pairs `stride` apart.
  static void pack_rows(Index rows, Index depth, Matrix<float> a, float* dst, Index stride) noexcept;
  /// As Reading::pack_columns, for a B with dense columns.
  static void pack_columns(Index depth, Index columns, Matrix<Pair> b, float* dst) noexcept;
  /// As Kernels::multiply_packed. Sums are in float.
  static void multiply_packed(Index M, Index N, Index depth, Matrix<float> a, const float* b, Block<float> c,
                              Next<float> next) noexcept;
};

}  // namespace isomer::gemm
