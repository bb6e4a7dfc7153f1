#include "isomer/kernels/loss/loss.h"

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/pass.h"
#include "isomer/kernels/loss/label_rows.h"
#include "isomer/kernels/loss/loss_kernels.h"

namespace isomer {

template <class T>
LossResult cross_entropy(View<const T, 2> logits, Labels labels, View<T, 2> dlogits, double scale, Context& context) {
  const Index N = logits.shape[0], V = logits.shape[1];
  const bool wanted = dlogits.present();
  check_labels("cross_entropy", labels, N, V);
  if (wanted) check_shape("cross_entropy", "dlogits of the shape of logits,", dlogits.shape, logits.shape);
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  LogitRow<T>* states = own.take<LogitRow<T>>(N);
  const double factor = scale / double(std::max<Index>(1, count_labels(labels)));
  const Index per_task = rows_of_task(V);
  context.parallel(ceil_div(N, per_task), [&](Index task, Workspace& scratch) {
    const Workspace::Scope task_scope(scratch);
    T* z = scratch.take<T>(V);
    for (Index n = task * per_task; n < std::min(N, (task + 1) * per_task); ++n) {
      if (labels(n) >= 0) {
        for (Index v = 0; v < V; ++v) z[v] = logits(n, v);
        states[n] = {};
        read_row(context.isa(), z, {0, V}, Index(labels(n)), states[n]);
        if (wanted) gradient_row(context.isa(), z, {0, V}, Index(labels(n)), states[n], {T(factor), T(0)});
      }
      for (Index v = 0; wanted && v < V; ++v) dlogits(n, v) = labels(n) < 0 ? T(0) : z[v];
    }
  });
  LossSum sum;
  for (Index n = 0; n < N; ++n)
    if (labels(n) >= 0) sum.add(states[n], Index(labels(n)));
  return sum.result();
}

template <class T>
double mean_squared_error(View<const T, 4> x, View<const T, 4> target, View<T, 4> dx, double scale, Context& context) {
  check_shape("mean_squared_error", "target of the shape of x,", target.shape, x.shape);
  if (dx.present()) check_shape("mean_squared_error", "dx of the shape of x,", dx.shape, x.shape);
  if (x.size() == 0) return 0;
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Pass pass(x.shape, {x.stride, target.stride, dx.stride});
  double* parts = own.take<double>(pass.patches());
  const T factor = T(2 * scale / double(x.size()));
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> got = read_cells(pass, patch, 0, x.data, scratch);
    const Cells<const T> want = read_cells(pass, patch, 1, target.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 2, dx.data, Accumulate::set, scratch);
    with_isa(context.isa(),
             [&]<Isa I>() { parts[patch.index] = LossKernels<T, I>::squared_error(patch.extent, got, want, factor, out); });
    store_cells(pass, patch, 2, out, dx.data);
  });
  double sum = 0;
  for (Index i = 0; i < pass.patches(); ++i) sum += parts[i];
  return sum / double(x.size());
}

template LossResult cross_entropy(View<const float, 2>, Labels, View<float, 2>, double, Context&);
template LossResult cross_entropy(View<const double, 2>, Labels, View<double, 2>, double, Context&);
template double mean_squared_error(View<const float, 4>, View<const float, 4>, View<float, 4>, double, Context&);
template double mean_squared_error(View<const double, 4>, View<const double, 4>, View<double, 4>, double, Context&);

}  // namespace isomer
