#include "isomer/kernels/gemm/gemm.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/kernels/gemm/gemm_kernels.h"

namespace isomer {

namespace {

using gemm::Block;
using gemm::kPanelMultiple;
using gemm::Matrix;

// Depth of a block: a panel of B (2 vectors wide) takes 24 of the 32 KB of L1, through which the rows of A pass.
constexpr Index kDepth = 384;
// Rows of A packed at a time: 144 KB, a part of the L2 that leaves room for the panels of B that pass through.
constexpr Index kRows = 96;
// Columns of B packed at a time: 6 MB, kept in L3 while all rows of A pass.
constexpr Index kColumns = 4096;
// Fewer tasks than this leave threads idle, so blocks of rows and columns shrink to these sizes to make more.
constexpr Index kTasks = 8, kFewRows = 48, kFewColumns = 512;
// Columns packed by one task.
constexpr Index kPackColumns = 128;
// Up to this many multiply-adds, packing costs more than it saves.
constexpr Index kDirect = Index(96) * 96 * 96;

// Elements of B that make a task of a product of few rows: about 10 µs.
constexpr Index kFewElements = 32768;

/// [0, size) in equal parts of at most `most`, each but the last a multiple of `unit`.
struct Parts {
  Index step, count;
  Parts(Index size, Index most, Index unit)
      : step(std::max(unit, round_up(ceil_div(size, ceil_div(size, most)), unit))), count(ceil_div(size, step)) {}
};

template <class T>
Matrix<T> shifted(Matrix<T> m, Index row, Index column) {
  return {m.data + row * m.row + column * m.column, m.row, m.column};
}

template <class T>
struct Problem {
  Index M, N, K;
  Matrix<T> a, b;
  View<T, 2> c;
  T alpha;
  bool add;       // to C, which is scaled by beta already
  const T* bias;  // dense; null: none
};

/// Columns j … j + n of C [m, n] are done but for the bias.
template <class T, Isa I>
void finish(const Problem<T>& x, Index m, Index j, Index n, Block<T> c) {
  if (x.bias != nullptr) gemm::Kernels<T, I>::add_row(m, n, x.bias + j, c);
}

/// One block of depth and columns: packs B, then every task packs its rows of A and multiplies.
template <class T, Isa I>
void multiply_block(const Problem<T>& x, Index p, Index depth, T* packed, Context& context) {
  context.parallel(ceil_div(x.N, kPackColumns), [&](Index task, Workspace&) {
    const Index j = task * kPackColumns;
    gemm::Kernels<T, I>::pack_columns(depth, std::min(kPackColumns, x.N - j), shifted(x.b, p, j), packed + depth * j);
  });
  const Index row_parts = std::max(ceil_div(x.M, kRows), std::min(kTasks, ceil_div(x.M, kFewRows)));
  const Parts rows(x.M, ceil_div(x.M, row_parts), 6);
  const Index column_parts = std::clamp<Index>(x.N / kFewColumns, 1, ceil_div(kTasks, rows.count));
  const Parts columns(x.N, ceil_div(x.N, column_parts), kPanelMultiple);
  context.parallel(rows.count * columns.count, [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index i = task / columns.count * rows.step, j = task % columns.count * columns.step;
    const Index m = std::min(rows.step, x.M - i), n = std::min(columns.step, x.N - j);
    T* block = scratch.take<T>(m * kDepth);
    gemm::Kernels<T, I>::pack_rows(m, depth, shifted(x.a, i, p), x.alpha, block, kDepth);
    const Block<T> c{x.c.at(i, j), x.c.stride[0], x.add || p > 0};
    gemm::Kernels<T, I>::multiply_packed(m, n, depth, Matrix<T>{block, kDepth, 1}, packed + depth * j, c);
    if (p + depth == x.K) finish<T, I>(x, m, j, n, c);
  });
}

template <class T, class W, Isa I>
void multiply_few(const Problem<T>& x, Matrix<W> b, Context& context) {
  const Parts columns(x.N, std::max<Index>(1, kFewElements / x.K), 1);
  context.parallel(columns.count, [&](Index task, Workspace&) {
    const Index j = task * columns.step, n = std::min(columns.step, x.N - j);
    const Block<T> c{x.c.at(0, j), x.c.stride[0], x.add};
    gemm::FewRows<T, W, I>::multiply(x.M, n, x.K, x.a, shifted(b, 0, j), x.alpha, c);
    finish<T, I>(x, x.M, j, n, c);
  });
}

/// C has dense rows and nothing is empty.
template <class T, Isa I>
void multiply(const Problem<T>& x, Context& context) {
  if (x.M * x.N * x.K <= kDirect && x.b.column == 1 && x.alpha == T(1)) {
    const Block<T> c{x.c.data, x.c.stride[0], x.add};
    gemm::Kernels<T, I>::multiply_direct(x.M, x.N, x.K, x.a, x.b, c);
    return finish<T, I>(x, x.M, 0, x.N, c);
  }
  if (x.M <= kInPlaceRows && x.a.column == 1 && x.b.row == 1) return multiply_few<T, T, I>(x, x.b, context);
  const Workspace::Scope scope(context.workspace());
  const Parts depths(x.K, kDepth, 1);
  T* packed = context.workspace().template take<T>(depths.step * round_up(std::min(x.N, kColumns), kPanelMultiple));
  for (Index j = 0; j < x.N; j += kColumns) {
    Problem<T> part = x;
    part.N = std::min(kColumns, x.N - j);
    part.b = shifted(x.b, 0, j);
    part.c = slice(x.c, 1, j, part.N);
    if (x.bias != nullptr) part.bias = x.bias + j;
    for (Index p = 0; p < x.K; p += depths.step) multiply_block<T, I>(part, p, std::min(depths.step, x.K - p), packed, context);
  }
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

template <class T>
void run(View<const T, 2> a, View<const T, 2> b, View<T, 2> c, Context& context, MatmulOptions<T> options) {
  const Index M = c.shape[0], N = c.shape[1], K = a.shape[1];
  require(a.shape[0] == M && b.shape[1] == N, "matmul", "expected C [", a.shape[0], ", ", b.shape[1], "], got [", M, ", ", N,
          "]");
  require(b.shape[0] == K, "matmul", "expected B with ", K, " rows, the columns of A, got ", b.shape[0]);
  if (options.bias.present())
    require(options.bias.shape[0] == N, "matmul", "expected a bias of ", N, " numbers, got ", options.bias.shape[0]);
  if (M == 0 || N == 0) return;
  const bool empty = K == 0 || options.alpha == T(0), dense = c.stride[1] == 1 || N == 1;
  if (options.bias.present() && (empty || !dense || (options.bias.stride[0] != 1 && N > 1))) {
    run(a, b, c, context, {.alpha = options.alpha, .beta = options.beta});
    return add_bias(c, options.bias);
  }
  // The kernels write rows: a C of dense columns is the transposed product, any other goes by way of a copy.
  if (!dense) {
    if (c.stride[0] == 1 || M == 1) return run(transposed(b), transposed(a), transposed(c), context, options);
    const Workspace::Scope scope(context.workspace());
    const View<T, 2> copy = contiguous(context.workspace().template take<T>(M * N), {M, N});
    run(a, b, copy, context, {.alpha = options.alpha});
    for (Index i = 0; i < M; ++i)
      for (Index j = 0; j < N; ++j) c(i, j) = copy(i, j) + (options.beta == T(0) ? T(0) : options.beta * c(i, j));
    return;
  }
  if ((options.beta != T(0) && options.beta != T(1)) || (empty && options.beta == T(0))) scale(c, options.beta);
  if (empty) return;
  const Problem<T> problem{.M = M,
                           .N = N,
                           .K = K,
                           .a = {a.data, a.stride[0], a.stride[1]},
                           .b = {b.data, b.stride[0], b.stride[1]},
                           .c = c,
                           .alpha = options.alpha,
                           .add = options.beta != T(0),
                           .bias = options.bias.data};
  with_isa(context.isa(), [&]<Isa I>() { multiply<T, I>(problem, context); });
}

}  // namespace

void matmul(View<const float, 2> a, View<const float, 2> b, View<float, 2> c, Context& context, MatmulOptions<float> options) {
  run(a, b, c, context, options);
}
void matmul(View<const float, 2> a, View<const Bf16, 2> b, View<float, 2> c, Context& context, View<const float, 1> bias) {
  const Index M = c.shape[0], N = c.shape[1], K = a.shape[1];
  require(a.shape[0] == M && b.shape[1] == N && b.shape[0] == K, "matmul", "expected B [", K, ", ", N, "] and C [", a.shape[0],
          ", ", b.shape[1], "], got [", b.shape[0], ", ", b.shape[1], "] and [", M, ", ", N, "]");
  require(M <= kInPlaceRows && a.stride[1] == 1 && b.stride[0] == 1 && c.stride[1] == 1, "matmul", "expected at most ",
          kInPlaceRows, " dense rows and a B of dense columns in bfloat16, got ", M, " rows");
  if (M == 0 || N == 0) return;
  if (bias.present())
    require(bias.shape[0] == N && bias.stride[0] == 1, "matmul", "expected a dense bias of ", N, " numbers, got ", bias.shape[0],
            " every ", bias.stride[0]);
  if (K == 0) {
    scale(c, 0.0f);
    return bias.present() ? add_bias(c, bias) : void();
  }
  const Problem<float> problem{.M = M,
                               .N = N,
                               .K = K,
                               .a = {a.data, a.stride[0], a.stride[1]},
                               .b = {},
                               .c = c,
                               .alpha = 1,
                               .add = false,
                               .bias = bias.data};
  with_isa(context.isa(), [&]<Isa I>() { multiply_few<float, Bf16, I>(problem, {b.data, b.stride[0], b.stride[1]}, context); });
}
void matmul(View<const double, 2> a, View<const double, 2> b, View<double, 2> c, Context& context,
            MatmulOptions<double> options) {
  run(a, b, c, context, options);
}

}  // namespace isomer
