#include "isomer/kernels/gemm/gemm.h"

#include <algorithm>
#include <cstdint>

#include "isomer/base/error.h"
#include "isomer/kernels/gemm/gemm_kernels.h"

namespace isomer {

namespace {

using gemm::Block;
using gemm::kPanelMultiple;
using gemm::Matrix;

// Depth of a block: a panel of B (2 vectors wide) takes 24 of the 32 KB of L1, through which the rows of A pass.
constexpr Index kDepth = 384;
// Rows of A packed at a time: 192 KB, a part of the L2 that leaves room for the panels of B that pass through.
constexpr Index kRows = 128;
// Columns of B at a time, and how much of B is packed at a time: 6 MB, kept in L3 while all rows of A pass.
constexpr Index kColumns = 4096, kPacked = kColumns * kDepth;
// Tasks come in multiples of this where they are few, so that threads end together; blocks of columns shrink to make as many.
constexpr Index kTasks = 8, kManyTasks = 64, kFewRows = 48, kFewColumns = 256;
// Columns packed by one task.
constexpr Index kPackColumns = 128;
// Up to this many multiply-adds, packing costs more than it saves.
constexpr Index kDirect = Index(96) * 96 * 96;

// Up to this many rows of A, reading B takes longer than the arithmetic: it is read in place, once.
constexpr Index kInPlaceRows = 8;
// A product of few rows: elements of B that make a task, or more if these are more tasks than so many a thread. Reading a stretch
// begins as slowly as memory answers, and what is asked for ahead of its end is for nothing, so stretches are few and long.
constexpr Index kFewElements = 32768, kFewTasks = 4;

/// [0, size) in `count` parts of about as many units each.
struct Parts {
  Index size, count, unit;
  [[nodiscard]] Index begin(Index part) const { return std::min(size, ceil_div(size, unit) * part / count * unit); }
  /// The most that a part holds.
  [[nodiscard]] Index most() const { return ceil_div(ceil_div(size, unit), count) * unit; }
};

template <class T>
Matrix<T> shifted(Matrix<T> m, Index row, Index column) {
  return {m.data + row * m.row + column * m.column, m.row, m.column};
}

/// The memory of m rows and some columns of A, whichever of the two is dense.
template <class T>
gemm::Next<T> rows_at(Matrix<T> a, Index i, Index m, Index p, Index depth) {
  const T* data = shifted(a, i, p).data;
  if (a.row == 1) return {data, depth, a.column, m};
  return a.column == 1 ? gemm::Next<T>{data, m, a.row, depth} : gemm::Next<T>{};
}

/// With W as the type of B.
template <class T, class W>
struct Problem {
  /// Numbers of A at a step of depth.
  static constexpr Index kTogether = std::is_same_v<W, gemm::Pair> ? 2 : 1;
  Index M, N, K;
  Matrix<T> a;
  Matrix<W> b;
  View<T, 2> c;
  T alpha;
  bool add;       // to C, which is scaled by beta already
  const T* bias;  // dense; null: none
};

/// Columns j … j + n of C [m, n] are done but for the bias.
template <Isa I, class T, class W>
void finish(const Problem<T, W>& x, Index m, Index j, Index n, Block<T> c) {
  if (x.bias != nullptr) gemm::Kernels<T, I>::add_row(m, n, x.bias + j, c);
}

/// Depths that are packed together, block by block of `step`.
struct Depths {
  Index begin, end, step;
  [[nodiscard]] Index size(Index p) const { return std::min(step, end - p); }
};

/// Some depths of all columns: packs B, then every task takes its part of C through them, while it is in the cache.
template <Isa I, class T, class W>
void multiply_depths(const Problem<T, W>& x, const Depths& depths, T* packed, Context& context) {
  const Index width = round_up(x.N, kPanelMultiple);
  const auto panels = [&](Index p, Index j) { return packed + (p - depths.begin) * width + depths.size(p) * j; };
  const Index pack_tasks = ceil_div(x.N, kPackColumns);
  context.parallel(pack_tasks * ceil_div(depths.end - depths.begin, depths.step), [&](Index task, Workspace&) {
    const Index p = depths.begin + task / pack_tasks * depths.step, j = task % pack_tasks * kPackColumns;
    const Index n = std::min(kPackColumns, x.N - j);
    if constexpr (Problem<T, W>::kTogether == 2)
      gemm::Pairs<I>::pack_columns(depths.size(p), n, shifted(x.b, p, j), panels(p, j));
    else
      gemm::Reading<T, W, I>::pack_columns(depths.size(p), n, shifted(x.b, p, j), panels(p, j));
  });
  const Index many = ceil_div(x.M, kRows), few = std::min(round_up(many, kTasks), ceil_div(x.M, kFewRows));
  const Parts rows{x.M, many < kManyTasks ? std::max(many, few) : many, 12};
  const Parts columns{x.N, std::clamp<Index>(x.N / kFewColumns, 1, ceil_div(kTasks, rows.count)), kPanelMultiple};
  context.parallel(rows.count * columns.count, [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index i = rows.begin(task / columns.count), m = rows.begin(task / columns.count + 1) - i;
    const Index j = columns.begin(task % columns.count), n = columns.begin(task % columns.count + 1) - j;
    T* block = scratch.take<T>(rows.most() * kDepth);
    for (Index p = depths.begin; p < depths.end; p += depths.step) {
      const Index depth = depths.size(p), then = p + depth;
      constexpr Index together = Problem<T, W>::kTogether;
      const Block<T> c{x.c.at(i, j), x.c.stride[0], x.add || p > 0};
      gemm::Next<T> next{};
      if (then < depths.end) next = rows_at(x.a, i, m, then * together, depths.size(then) * together);
      const Matrix<T> rows_of_a = shifted(x.a, i, p * together), packed_a{block, kDepth, 1};
      if constexpr (together == 2) {
        gemm::Pairs<I>::pack_rows(m, depth, rows_of_a, block, kDepth);
        gemm::Pairs<I>::multiply_packed(m, n, depth, packed_a, panels(p, j), c, next);
      } else {
        gemm::Kernels<T, I>::pack_rows(m, depth, rows_of_a, x.alpha, block, kDepth);
        gemm::Kernels<T, I>::multiply_packed(m, n, depth, packed_a, panels(p, j), c, next);
      }
    }
    if (depths.end == x.K) finish<I>(x, m, j, n, {x.c.at(i, j), x.c.stride[0], true});
  });
}

template <Isa I, class T, class W>
void multiply_few(const Problem<T, W>& x, Context& context) {
  // No number shows the cut: a column has a sum of its own.
  const Index most = context.threads() * kFewTasks;
  const Parts columns{x.N, std::min(most, ceil_div(x.N, std::max<Index>(1, kFewElements / x.K))), 1};
  context.parallel(columns.count, [&](Index task, Workspace&) {
    const Index j = columns.begin(task), n = columns.begin(task + 1) - j;
    const Block<T> c{x.c.at(0, j), x.c.stride[0], x.add};
    gemm::Reading<T, W, I>::multiply_few(x.M, n, x.K, x.a, shifted(x.b, 0, j), x.alpha, c);
    finish<I>(x, x.M, j, n, c);
  });
}

template <Isa I, class T, class W>
void multiply_blocks(const Problem<T, W>& x, Context& context) {
  const Workspace::Scope scope(context.workspace());
  const Index step = ceil_div(x.K, ceil_div(x.K, kDepth)), width = round_up(std::min(x.N, kColumns), kPanelMultiple);
  const Index together = std::max<Index>(1, kPacked / (step * width)) * step;
  T* packed = context.workspace().template take<T>(std::min(together, x.K) * width);
  for (Index j = 0; j < x.N; j += kColumns) {
    Problem<T, W> part = x;
    part.N = std::min(kColumns, x.N - j);
    part.b = shifted(x.b, 0, j);
    part.c = slice(x.c, 1, j, part.N);
    if (x.bias != nullptr) part.bias = x.bias + j;
    for (Index p = 0; p < x.K; p += together) multiply_depths<I>(part, {p, std::min(p + together, x.K), step}, packed, context);
  }
}

/// C has dense rows and nothing is empty.
template <Isa I, class T, class W>
void multiply(const Problem<T, W>& x, Context& context) {
  if constexpr (std::is_same_v<T, W>) {
    if (x.M * x.N * x.K <= kDirect && x.b.column == 1 && x.alpha == T(1)) {
      const Block<T> c{x.c.data, x.c.stride[0], x.add};
      gemm::Kernels<T, I>::multiply_direct(x.M, x.N, x.K, x.a, x.b, c);
      return finish<I>(x, x.M, 0, x.N, c);
    }
  }
  if (x.M <= kInPlaceRows && x.a.column == 1 && x.b.row == 1) return multiply_few<I>(x, context);
  multiply_blocks<I>(x, context);
}

/// A is rounded to bf16 first.
template <Isa I>
void multiply_rounded(Problem<float, Bf16> x, Context& context) {
  const Matrix<Bf16>& b = x.b;
  if constexpr (I == Isa::avx512) {
    // What of B has to lie at multiples of pairs is moved as floats, which lie at multiples of four bytes.
    const bool pairs = x.K % 2 == 0 && b.column % 2 == 0 && reinterpret_cast<std::uintptr_t>(b.data) % alignof(float) == 0;
    if (multiplies_bf16(I) && x.M > kInPlaceRows && b.row == 1 && x.a.column == 1 && x.alpha == 1 && pairs)
      return multiply_blocks<I>(Problem<float, gemm::Pair>{.M = x.M,
                                                           .N = x.N,
                                                           .K = x.K / 2,
                                                           .a = x.a,
                                                           .b = {reinterpret_cast<const gemm::Pair*>(b.data), 1, b.column / 2},
                                                           .c = x.c,
                                                           .alpha = 1,
                                                           .add = x.add,
                                                           .bias = x.bias},
                                context);
  }
  const Workspace::Scope scope(context.workspace());
  float* rounded = context.workspace().template take<float>(x.M * x.K);
  for (Index i = 0; i < x.M; ++i)
    for (Index p = 0; x.a.column != 1 && p < x.K; ++p) rounded[i * x.K + p] = *shifted(x.a, i, p).data;
  context.parallel(ceil_div(x.M, kRows), [&](Index task, Workspace&) {
    for (Index i = task * kRows; i < std::min(x.M, (task + 1) * kRows); ++i) {
      float* row = rounded + i * x.K;
      gemm::Rounding<I>::round(x.K, x.a.column == 1 ? x.a.data + i * x.a.row : row, row);
    }
  });
  x.a = {rounded, x.K, 1};
  multiply<I>(x, context);
}

/// C = beta · C, without reading it when beta = 0.
template <class T>
void scale(View<T, 2> c, T beta) {
  for (Index i = 0; i < c.shape[0]; ++i)
    for (Index j = 0; j < c.shape[1]; ++j) c(i, j) = beta == T(0) ? T(0) : beta * c(i, j);
}

/// C += bias, of any strides.
template <class T>
void add_bias(View<T, 2> c, View<const T, 1> bias) {
  for (Index i = 0; i < c.shape[0]; ++i)
    for (Index j = 0; j < c.shape[1]; ++j) c(i, j) += bias(j);
}

template <class T, class W>
void run(View<const T, 2> a, View<const W, 2> b, View<T, 2> c, Context& context, MatmulOptions<T> options) {
  const Index M = c.shape[0], N = c.shape[1], K = a.shape[1];
  require(a.shape[0] == M && b.shape[1] == N, "matmul", "expected C [", a.shape[0], ", ", b.shape[1], "], got [", M, ", ", N,
          "]");
  require(b.shape[0] == K, "matmul", "expected B with ", K, " rows, the columns of A, got ", b.shape[0]);
  if (options.bias.present())
    require(options.bias.shape[0] == N, "matmul", "expected a bias of ", N, " numbers, got ", options.bias.shape[0]);
  if (M == 0 || N == 0) return;
  ISOMER_ASSERT(options.rows == RowsOfA::exact || (std::is_same_v<W, Bf16>), "rows of A are rounded for a B of bf16");
  const bool empty = K == 0 || options.alpha == T(0), dense = c.stride[1] == 1 || N == 1;
  if (options.bias.present() && (empty || !dense || (options.bias.stride[0] != 1 && N > 1))) {
    run<T, W>(a, b, c, context, {.alpha = options.alpha, .beta = options.beta, .rows = options.rows});
    return add_bias(c, options.bias);
  }
  // The kernels write rows: a C of dense columns is the transposed product, any other goes by way of a copy.
  if (!dense) {
    if constexpr (std::is_same_v<T, W>)
      if (c.stride[0] == 1 || M == 1) return run<T, W>(transposed(b), transposed(a), transposed(c), context, options);
    const Workspace::Scope scope(context.workspace());
    const View<T, 2> copy = contiguous(context.workspace().template take<T>(M * N), {M, N});
    run<T, W>(a, b, copy, context, {.alpha = options.alpha, .rows = options.rows});
    for (Index i = 0; i < M; ++i)
      for (Index j = 0; j < N; ++j) c(i, j) = copy(i, j) + (options.beta == T(0) ? T(0) : options.beta * c(i, j));
    return;
  }
  if ((options.beta != T(0) && options.beta != T(1)) || (empty && options.beta == T(0))) scale(c, options.beta);
  if (empty) return;
  const Problem<T, W> problem{.M = M,
                              .N = N,
                              .K = K,
                              .a = {a.data, a.stride[0], a.stride[1]},
                              .b = {b.data, b.stride[0], b.stride[1]},
                              .c = c,
                              .alpha = options.alpha,
                              .add = options.beta != T(0),
                              .bias = options.bias.data};
  with_isa(context.isa(), [&]<Isa I>() {
    if constexpr (std::is_same_v<W, Bf16>)
      if (options.rows == RowsOfA::bf16) return multiply_rounded<I>(problem, context);
    multiply<I>(problem, context);
  });
}

}  // namespace

void matmul(View<const float, 2> a, View<const float, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options) {
  run<float, float>(a, b, c, context, options);
}
void matmul(View<const double, 2> a, View<const double, 2> b, View<double, 2> c, Context& context,
            MatmulOptions<double> options) {
  run<double, double>(a, b, c, context, options);
}
void matmul(View<const float, 2> a, View<const Bf16, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options) {
  run<float, Bf16>(a, b, c, context, options);
}
void matmul(View<const float, 2> a, View<const F16, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options) {
  run<float, F16>(a, b, c, context, options);
}

}  // namespace isomer
