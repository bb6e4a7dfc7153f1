#include "isomer/kernels/norm/norm.h"

#include <algorithm>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/norm/norm_kernels.h"

namespace isomer {

namespace {

/// The first of several parameters and gradients decides: [1, D] or [H, D]; the others must agree.
template <class T>
class HeadCount {
 public:
  HeadCount(const char* op, const std::array<Index, 4>& shape) : op_(op), H_(shape[2]), D_(shape[3]) {}
  void check(const char* name, View<const T, 2> p) {
    if (!p.present()) return;
    const Index rows = p.shape[0];
    const bool fits = known_ ? rows == heads_ : rows == 1 || rows == H_;
    require(fits && p.shape[1] == D_, op_, "expected ", name, known_ ? " [" : " [1 or ", known_ ? heads_ : H_, ", ", D_,
            "], got [", rows, ", ", p.shape[1], "]");
    heads_ = rows;
    known_ = true;
  }
  [[nodiscard]] Index heads() const { return heads_; }

 private:
  const char* op_;
  Index H_, D_, heads_ = 1;
  bool known_ = false;
};

template <class T>
NormJob<T> make_job(const char* op, View<const T, 4> x, NormParameters<T> p, NormOptions options, NormGradients<T> gradients,
                    Workspace& scratch) {
  require(options.eps >= 0, op, "expected eps >= 0, got ", options.eps);
  HeadCount<T> count(op, x.shape);
  count.check("weight", p.weight);
  count.check("bias", p.bias);
  count.check("dweight", gradients.dweight);
  count.check("dbias", gradients.dbias);
  return {
      options, x.shape[3], count.heads(), dense_matrix(p.weight, scratch), dense_matrix(p.bias, scratch), gradients.accumulate_x};
}

}  // namespace

template <class T>
void norm(View<const T, 4> x, NormParameters<T> parameters, NormOptions options, View<T, 4> y, Context& context) {
  const Workspace::Scope job_scope(context.workspace());
  const NormJob<T> job = make_job<T>("norm", x, parameters, options, {}, context.workspace());
  check_shape("norm", "y of the shape of x,", y.shape, x.shape);
  if (x.size() == 0) return;
  each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    NormKernels<T, I>::forward(job, in[0], out, range);
  });
}

template <class T>
void norm_vjp(View<const T, 4> x, View<const T, 4> dy, NormParameters<T> parameters, NormOptions options,
              NormGradients<T> gradients, Context& context) {
  const Index R = row_count(x), blocks = row_blocks(R);
  const Workspace::Scope job_scope(context.workspace());
  const NormJob<T> job = make_job("norm_vjp", x, parameters, options, gradients, context.workspace());
  check_shape("norm_vjp", "dy of the shape of x,", dy.shape, x.shape);
  if (gradients.dx.present()) check_shape("norm_vjp", "dx of the shape of x,", gradients.dx.shape, x.shape);
  // A block sums its rows' part of [dweight, dbias]; the blocks are added in order.
  const Index size = job.heads * job.D;
  T* partials = context.workspace().template take<T>(blocks * 2 * size);
  context.parallel(blocks, [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<const T> in = read_rows(x, range, scratch), up = read_rows(dy, range, scratch);
    const Rows<T> out = write_rows(gradients.dx, range, scratch, job.accumulate_x);
    T* sums = partials + block * 2 * size;
    std::fill_n(sums, 2 * size, T(0));
    T* dweight = gradients.dweight.present() ? sums : nullptr;
    T* dbias = gradients.dbias.present() ? sums + size : nullptr;
    with_isa(context.isa(), [&]<Isa I>() { NormKernels<T, I>::backward(job, in, up, out, dweight, dbias, range); });
    store_rows(out, gradients.dx, range);
  });
  sum_partials(partials, blocks, 2 * size, gradients.dweight);
  sum_partials(partials + size, blocks, 2 * size, gradients.dbias);
}

template void norm(View<const float, 4>, NormParameters<float>, NormOptions, View<float, 4>, Context&);
template void norm(View<const double, 4>, NormParameters<double>, NormOptions, View<double, 4>, Context&);
template void norm_vjp(View<const float, 4>, View<const float, 4>, NormParameters<float>, NormOptions, NormGradients<float>,
                       Context&);
template void norm_vjp(View<const double, 4>, View<const double, 4>, NormParameters<double>, NormOptions, NormGradients<double>,
                       Context&);

}  // namespace isomer
