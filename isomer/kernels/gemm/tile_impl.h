#pragma once
// Products of the size of a chunk: C = A·B or C += A·B with everything in cache. No packing of A, no allocation, one thread.
// For the translation units of one Isa only; include vec_<isa>.h first. For large matrices use kernels/gemm/gemm.h.
// A is read one element at a time (broadcast), so it may have any strides: a transposed A costs nothing.
// B is read a vector at a time, so its rows must be contiguous: transpose(…) makes such a B from its transpose.
// A Shape says which part of the depth counts for a tile of C, so that triangles and bands are skipped a tile at a time;
// what lies outside the band but inside a tile that is worked on is read, so the caller keeps zeros there. A Shape of C may say
// where the columns end that rows need, so that tiles on the edge are as narrow as one vector.
#include <type_traits>

#include "isomer/base/index.h"
#include "isomer/simd/vec.h"

namespace isomer::gemm {

/// Rows × columns of C held in registers. AVX2 has 16 registers: 6·2 sums, 2 of B, 1 broadcast of A. 12 independent sums cover
/// the latency (4) × throughput (2) of the FMA units, which needs 8. AVX-512 has 32 registers and is content with as many sums.
inline constexpr int kTileRows = 6;
template <class T, Isa I>
inline constexpr Index kTileColumns = 2 * simd::Vec<T, I>::lanes;

/// Row-major or any other strides; reads A(i, p) = data[i * row + p * column].
template <class T>
struct Strided {
  const T* data;
  Index row, column;
};

struct Range {
  Index begin, end;
};

/// B(p, j) = data[(j / W) * panel + p * row + j % W] with W = kTileColumns: a row-major matrix has panel = W; a packed one
/// (pack, pack_transposed) has row = W, so that a tile's columns lie together whatever the width of the matrix.
template <class T>
struct Panels {
  const T* data;
  Index row, panel;
};

struct Full {  // every product counts
  ISOMER_INLINE static Range depth(Index, Index, Index, Index, Index depth) { return {0, depth}; }
};
/// The same for large matrices: on AVX-512 tiles have twice the rows. Half as much of B passes through L1, and 24 sums leave room
/// above the latency (6) × throughput (2) of products of bf16, which 12 only just cover.
struct Large : Full {};
template <class Shape, Isa I>
inline constexpr int kRowsOf = I == Isa::avx512&& std::is_same_v<Shape, Large> ? 2 * kTileRows : kTileRows;
/// C is needed only where lo ≤ column − row ≤ hi.
struct BandOfC {
  Index lo, hi;
  [[nodiscard]] ISOMER_INLINE Range depth(Index i, Index rows, Index j, Index columns, Index depth) const {
    const bool needed = j - (i + rows - 1) <= hi && j + columns - 1 - i >= lo;
    return {0, needed ? depth : 0};
  }
  [[nodiscard]] ISOMER_INLINE Index end(Index i, Index rows) const { return i + rows + hi; }
};
/// A(i, p) is zero unless lo ≤ p − i ≤ hi.
struct BandOfA {
  Index lo, hi;
  [[nodiscard]] ISOMER_INLINE Range depth(Index i, Index rows, Index, Index, Index depth) const {
    const Index begin = i + lo, end = i + rows + hi;
    return {begin > 0 ? begin : 0, end < depth ? end : depth};
  }
};

enum class Store { set, add };

/// What becomes of C: overwritten, added to, or, with `keep`, row i of it multiplied by keep[i] and added to, or, where `after`
/// is not 0, first `after` times the product added and then multiplied (Shape Full only).
template <class T>
struct Into {
  Store store;
  const T* keep = nullptr;
  T after = 0;
  ISOMER_INLINE Into(Store how) : store(how) {}  // NOLINT(google-explicit-constructor): most products only say how
  ISOMER_INLINE explicit Into(const T* factors, T of_product = 0) : store(Store::add), keep(factors), after(of_product) {}
};

/// What the tiles add up: products of numbers.
struct Numbers {
  template <class V>
  static ISOMER_INLINE V add(V x, V y, V sum) noexcept {
    return fma(x, y, sum);
  }
};

namespace internal {

// `width` counts the valid columns of the tile; only the last vector of a tile may be cut.
template <class T, Isa I, int rows, int vectors, bool cut, class Product = Numbers>
ISOMER_INLINE void micro_body(Range p, Strided<T> a, const T* b, Index ldb, T* c, Index ldc, Into<T> into, Index width) noexcept {
  using V = simd::Vec<T, I>;
  const Index tail = width - (vectors - 1) * V::lanes;
  const auto load = [&](const T* q, int v) { return cut && v == vectors - 1 ? V::load(q, tail) : V::load(q); };
  V sum[rows][vectors];
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sum[i][v] = V::zero();
      // C may be far away: it is fetched while the sums run, and added last.
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) __builtin_prefetch(c + i * ldc, 1);
  const T* ap = a.data + p.begin * a.column;
  const T* bp = b + p.begin * ldb;
  for (Index n = p.end - p.begin; n > 0; --n) {
    V row[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) row[v] = load(bp + v * V::lanes, v);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
      const V x = V::set(ap[i * a.row]);
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[i][v] = Product::add(x, row[v], sum[i][v]);
    }
    ap += a.column;
    bp += ldb;
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      T* q = c + i * ldc + v * V::lanes;
      if (into.after != T(0))
        sum[i][v] = V::set(into.keep[i]) * fma(V::set(into.after), sum[i][v], load(q, v));
      else if (into.keep)
        sum[i][v] = fma(V::set(into.keep[i]), load(q, v), sum[i][v]);
      else if (into.store == Store::add)
        sum[i][v] = sum[i][v] + load(q, v);
      if (cut && v == vectors - 1)
        sum[i][v].store(q, tail);
      else
        sum[i][v].store(q);
    }
}

template <class T, Isa I, int rows, int vectors, bool cut, class Product>
inline void micro(Range p, Strided<T> a, const T* b, Index ldb, T* c, Index ldc, Into<T> into, Index width) noexcept {
  micro_body<T, I, rows, vectors, cut, Product>(p, a, b, ldb, c, ldc, into, width);
}

template <class T, Isa I, int rows, class Product>
inline void micro_columns(Range p, Strided<T> a, const T* b, Index ldb, T* c, Index ldc, Into<T> into, Index width) noexcept {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  if (width == 2 * lanes)
    micro<T, I, rows, 2, false, Product>(p, a, b, ldb, c, ldc, into, width);
  else if (width > lanes)
    micro<T, I, rows, 2, true, Product>(p, a, b, ldb, c, ldc, into, width);
  else if (width == lanes)
    micro<T, I, rows, 1, false, Product>(p, a, b, ldb, c, ldc, into, width);
  else
    micro<T, I, rows, 1, true, Product>(p, a, b, ldb, c, ldc, into, width);
}

}  // namespace internal

/// Nothing to do between tiles.
struct Nothing {
  ISOMER_INLINE void operator()() const {}
};

/// C [M, N] = or += A [M, depth] · B [depth, N]. `between` is called after every tile: a place to prefetch what is needed later,
/// a few cache lines at a time.
template <class T, Isa I, class Product = Numbers, class Shape, class Between = Nothing>
void multiply(Shape shape, Index M, Index N, Index depth, Strided<T> a, Panels<T> b, T* c, Index ldc, Into<T> into,
              Between&& between = {}) noexcept {
  constexpr Index width = kTileColumns<T, I>, lanes = simd::Vec<T, I>::lanes;
  constexpr int tall = kRowsOf<Shape, I>;
  for (Index j = 0; j < N; j += width) {
    const Index widest = N - j < width ? N - j : width;
    const Index most = widest == width ? tall : kTileRows;
    for (Index i = 0, rows = 0; i < M; i += rows) {
      rows = M - i >= most ? most : M - i < kTileRows ? M - i : kTileRows;
      Index columns = widest;
      if constexpr (requires { shape.end(i, rows); })
        if (widest > lanes && shape.end(i, rows) - j <= lanes) columns = lanes;
      const Range p = shape.depth(i, rows, j, columns, depth);
      // Nothing to add; a `set` of an empty sum is left out too: whoever gives a band does not read outside it.
      if (p.begin >= p.end && depth > 0) continue;
      const Strided<T> ai{a.data + i * a.row, a.row, a.column};
      const T* bj = b.data + j / width * b.panel;
      T* cij = c + i * ldc + j;
      Into<T> tile = into;
      if (into.keep) tile.keep += i;
      // Most tiles are whole: no call, no choice.
      if constexpr (tall > kTileRows)
        if (rows == tall) {
          internal::micro_body<T, I, tall, 2, false, Product>(p, ai, bj, b.row, cij, ldc, tile, width);
          between();
          continue;
        }
      if (rows == kTileRows && columns == width) {
        internal::micro_body<T, I, kTileRows, 2, false, Product>(p, ai, bj, b.row, cij, ldc, tile, width);
        between();
        continue;
      }
      switch (rows) {
        case 6: internal::micro_columns<T, I, 6, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
        case 5: internal::micro_columns<T, I, 5, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
        case 4: internal::micro_columns<T, I, 4, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
        case 3: internal::micro_columns<T, I, 3, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
        case 2: internal::micro_columns<T, I, 2, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
        default: internal::micro_columns<T, I, 1, Product>(p, ai, bj, b.row, cij, ldc, tile, columns); break;
      }
      between();
    }
  }
}

/// The same with a row-major B.
template <class T, Isa I, class Shape, class Between = Nothing>
void multiply(Shape shape, Index M, Index N, Index depth, Strided<T> a, const T* b, Index ldb, T* c, Index ldc, Into<T> into,
              Between&& between = {}) noexcept {
  multiply<T, I>(shape, M, N, depth, a, Panels<T>{b, ldb, kTileColumns<T, I>}, c, ldc, into, between);
}

/// dst [columns, rows] = transpose of src [rows, columns].
template <class T, Isa I>
void transpose(Index rows, Index columns, const T* src, Index lds, T* dst, Index ldd) noexcept {
  using V = simd::Vec<T, I>;
  const Index full_rows = rows - rows % V::side, full_columns = columns - columns % V::side;
  for (Index i = 0; i < full_rows;) {
    const Index band = full_rows - i >= V::lanes ? V::lanes : V::side;
    Index j = 0;
    for (; band == V::lanes && j + V::lanes <= columns; j += V::lanes)
      V::transpose(src + i * lds + j, lds, dst + j * ldd + i, ldd);
    for (; j < full_columns; j += V::side)
      for (Index r = i; r < i + band; r += V::side) V::transpose_side(src + r * lds + j, lds, dst + j * ldd + r, ldd);
    i += band;
  }
  for (Index i = 0; i < rows; ++i)
    for (Index j = i < full_rows ? full_columns : 0; j < columns; ++j) dst[j * ldd + i] = src[i * lds + j];
}

/// Elements of a packed matrix of `columns` columns: whole panels, the last one padded with zeros.
template <class T, Isa I>
ISOMER_INLINE Index packed_size(Index rows, Index columns) {
  return rows * round_up(columns, kTileColumns<T, I>);
}

/// Writes src [rows, columns] as rows of panels that are `panel` elements apart (rows · W when it is the whole matrix).
template <class T, Isa I>
void pack(Index rows, Index columns, const T* src, Index lds, T* dst, Index panel) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index width = kTileColumns<T, I>;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; j += width)
      for (Index v = 0; v < width; v += V::lanes) {
        const Index left = columns - j - v;
        (left > 0 ? V::load(src + i * lds + j + v, left) : V::zero()).store(dst + j / width * panel + i * width + v);
      }
}

/// dst = the panels, columns · W apart, of the transpose of src [rows, columns]: a B of depth `columns` with `rows` columns.
template <class T, Isa I>
void pack_transposed(Index rows, Index columns, const T* src, Index lds, T* dst) noexcept {
  using V = simd::Vec<T, I>;
  constexpr Index width = kTileColumns<T, I>;
  for (Index i = 0; i < rows; i += width) {
    T* panel = dst + i * columns;
    for (Index v = 0; v < width; v += V::lanes) {
      const Index left = rows - i - v;
      Index p = 0;
      if (left >= V::lanes)
        for (; p + V::lanes <= columns; p += V::lanes) V::transpose(src + (i + v) * lds + p, lds, panel + p * width + v, width);
      for (; p < columns; ++p)
        for (Index l = 0; l < V::lanes; ++l) panel[p * width + v + l] = l < left ? src[(i + v + l) * lds + p] : T(0);
    }
  }
}

}  // namespace isomer::gemm
