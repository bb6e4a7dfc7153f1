#include "isomer/kernels/embedding/embedding.h"

#include <algorithm>
#include <type_traits>

#include "isomer/base/bf16.h"
#include "isomer/base/f16.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

using Ids = View<const std::int64_t, 2>;

// Rows of the table and columns of a task of the gradient: few enough columns that a frequent row is shared by threads.
constexpr Index kTableRows = 64, kColumns = 128;

Index id_of(Ids ids, Index token) { return Index(ids(token / ids.shape[1], token % ids.shape[1])); }

void check(const char* op, Ids ids, Index V, const char* name, const std::array<Index, 4>& rows, Index D) {
  check_shape(op, name, rows, {ids.shape[0], ids.shape[1], 1, D});
  for (Index b = 0; b < ids.shape[0]; ++b)
    for (Index t = 0; t < ids.shape[1]; ++t)
      require(ids(b, t) >= 0 && ids(b, t) < V, op, "expected ids from 0 to ", V - 1, ", got ", ids(b, t), " at [", b, ", ", t,
              "]");
}

template <class T, class W>
T widened(W x) {
  if constexpr (std::is_same_v<T, W>)
    return x;
  else
    return to_float(x);
}

/// The tokens in the order of their ids: those of id v are list[first[v]], …, list[first[v + 1] − 1], in order.
struct TokensById {
  Index *first, *list;

  TokensById(Ids ids, Index V, Workspace& scratch) : first(scratch.take<Index>(V + 2)), list(scratch.take<Index>(ids.size())) {
    // Counts stand two places on; as they become sums and the tokens go in, they move to where they belong.
    std::fill_n(first, V + 2, Index(0));
    for (Index n = 0; n < ids.size(); ++n) ++first[id_of(ids, n) + 2];
    for (Index v = 2; v < V + 2; ++v) first[v] += first[v - 1];
    for (Index n = 0; n < ids.size(); ++n) list[first[id_of(ids, n) + 1]++] = n;
  }
};

template <class T>
struct Scatter {
  Rows<const T> dy;
  TokensById tokens;
  View<T, 2> dtable;
  Accumulate accumulate;

  /// Columns [begin, begin + n) of row v of the table; `part` and `sums` are scratch for n numbers.
  template <Isa I>
  void run(Index v, Index begin, Index n, T* part, double* sums) const {
    const Index *first = tokens.list + tokens.first[v], *end = tokens.list + tokens.first[v + 1];
    T* target = dtable.at(v, begin);
    if (first == end && accumulate == Accumulate::add) return;
    std::fill_n(sums, n, 0.0);
    for (Index i = 0; i < end - first; ++i) {
      const Accumulate mode = i % kRowsInT == 0 ? Accumulate::set : Accumulate::add;
      ArithmeticKernels<T, I>::product({.x = {dy.row(first[i]) + begin, 0, 1}, .weight = {}}, {1, n}, {part, 0, 1}, mode);
      if ((i + 1) % kRowsInT == 0 || first + i + 1 == end)
        for (Index c = 0; c < n; ++c) sums[c] += double(part[c]);
    }
    for (Index c = 0; c < n; ++c) {
      T& x = target[c * dtable.stride[1]];
      x = accumulate == Accumulate::add ? T(x + T(sums[c])) : T(sums[c]);
    }
  }
};

}  // namespace

template <class T, class W>
void embedding(Ids ids, View<const W, 2> table, View<T, 4> y, Context& context) {
  const Index D = table.shape[1], N = ids.size();
  check("embedding", ids, table.shape[0], "y", y.shape, D);
  const Rows<T> rows = rows_of(y);
  context.parallel(row_blocks(N), [&](Index block, Workspace&) {
    const RowRange range = row_block(block, N);
    for (Index n = range.begin; n < range.end; ++n) {
      const W* from = table.at(id_of(ids, n));
      T* to = rows.row(n);
      if (dense_rows(y) && (D == 1 || table.stride[1] == 1))
        std::transform(from, from + D, to, widened<T, W>);
      else
        for (Index d = 0; d < D; ++d) to[d * y.stride[3]] = widened<T, W>(from[d * table.stride[1]]);
    }
  });
}

template <class T>
void embedding_vjp(Ids ids, View<const T, 4> dy, View<T, 2> dtable, Accumulate accumulate, Context& context) {
  const Index V = dtable.shape[0], D = dtable.shape[1];
  check("embedding_vjp", ids, V, "dy", dy.shape, D);
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Scatter<T> scatter{read_rows(dy, {0, ids.size()}, own), TokensById(ids, V, own), dtable, accumulate};
  const Index strips = ceil_div(D, kColumns);
  context.parallel(ceil_div(V, kTableRows) * strips, [&](Index task, Workspace& scratch) {
    const Workspace::Scope task_scope(scratch);
    const Index begin = task % strips * kColumns, n = std::min(kColumns, D - begin), v = task / strips * kTableRows;
    T* part = scratch.take<T>(n);
    double* sums = scratch.take<double>(n);
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index i = v; i < std::min(V, v + kTableRows); ++i) scatter.template run<I>(i, begin, n, part, sums);
    });
  });
}

template void embedding(Ids, View<const float, 2>, View<float, 4>, Context&);
template void embedding(Ids, View<const Bf16, 2>, View<float, 4>, Context&);
template void embedding(Ids, View<const F16, 2>, View<float, 4>, Context&);
template void embedding(Ids, View<const double, 2>, View<double, 4>, Context&);
template void embedding_vjp(Ids, View<const float, 4>, View<float, 2>, Accumulate, Context&);
template void embedding_vjp(Ids, View<const double, 4>, View<double, 2>, Accumulate, Context&);

}  // namespace isomer
