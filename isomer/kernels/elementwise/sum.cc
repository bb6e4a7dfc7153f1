#include "isomer/kernels/elementwise/sum.h"

#include <algorithm>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/pass.h"

namespace isomer {

namespace {

// Operands of the passes below.
constexpr int kX = 0, kWeight = 1, kY = 2;

/// Sums of parts of the work, over four axes, and how y is made of them: axes that y does not have are summed.
struct Partials {
  const double* data;
  std::array<Index, 4> shape;
  std::array<Index, 4> y_stride;
  std::array<bool, 4> summed;
};

/// One element of y: the parts that begin at `first`, in order.
double sum_of(const Partials& p, Index first) {
  std::array<Index, 4> count, stride;
  Index step = 1;
  for (std::size_t axis = 4; axis-- > 0; step *= p.shape[axis]) {
    count[axis] = p.summed[axis] ? p.shape[axis] : 1;
    stride[axis] = step;
  }
  double sum = 0;
  for (Index i = 0; i < count[0]; ++i)
    for (Index j = 0; j < count[1]; ++j)
      for (Index k = 0; k < count[2]; ++k)
        for (Index l = 0; l < count[3]; ++l) sum += p.data[first + i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3]];
  return sum;
}

template <class T>
void finish(const Partials& p, double scale, T* y, Accumulate accumulate, Context& context) {
  constexpr Index kBlock = 2048;
  Index kept = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) kept *= p.summed[axis] ? 1 : p.shape[axis];
  context.parallel(ceil_div(kept, kBlock), [&](Index task, Workspace&) {
    for (Index n = task * kBlock; n < std::min(kept, (task + 1) * kBlock); ++n) {
      Index rest = n, step = 1, first = 0, target = 0;
      for (std::size_t axis = 4; axis-- > 0; step *= p.shape[axis]) {
        if (p.summed[axis]) continue;
        first += rest % p.shape[axis] * step;
        target += rest % p.shape[axis] * p.y_stride[axis];
        rest /= p.shape[axis];
      }
      const T value = T(scale * sum_of(p, first));
      y[target] = accumulate == Accumulate::add ? y[target] + value : value;
    }
  });
}

template <class T>
Product<T> product_of(const Pass& pass, const Patch& patch, const SumInputs<T>& in, Workspace& scratch) {
  return {read_cells(pass, patch, kX, in.x.data, scratch), read_cells(pass, patch, kWeight, in.weight.data, scratch),
          T(in.scale)};
}

/// Patches hold whole rows, and each is the sum of its own.
template <class T>
void sum_whole_rows(const Pass& pass, const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Product<T> product = product_of(pass, patch, in, scratch);
    double* rows = scratch.take<double>(patch.extent.rows);
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::sum_columns(product, patch.extent, rows); });
    T* target = y.data + patch.offset[kY];
    for (Index r = 0; r < patch.extent.rows; ++r, target += pass.stride(kY)[2])
      *target = T(in.scale * rows[r]) + (accumulate == Accumulate::add ? *target : T(0));
  });
}

/// The parts are the sums of the rows of a patch, [.., .., rows, patches along the columns].
template <class T>
void sum_last_axis(const Pass& pass, const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  const Index cuts = pass.cuts()[1];
  const Strides& s = pass.stride(kY);
  const auto kept = [&](std::size_t axis) { return s[axis] != 0 || pass.shape()[axis] == 1; };
  if (cuts == 1 && kept(0) && kept(1) && kept(2)) return sum_whole_rows(pass, in, y, accumulate, context);
  const std::array<Index, 4> parts{pass.shape()[0], pass.shape()[1], pass.shape()[2], cuts};
  double* sums = context.workspace().take<double>(parts[0] * parts[1] * parts[2] * cuts);
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Product<T> product = product_of(pass, patch, in, scratch);
    double* rows = scratch.take<double>(patch.extent.rows);
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::sum_columns(product, patch.extent, rows); });
    const Index first = (patch.outer * parts[2] + patch.row) * cuts + patch.column / pass.size().columns;
    for (Index r = 0; r < patch.extent.rows; ++r) sums[first + r * cuts] = rows[r];
  });
  finish({sums, parts, {s[0], s[1], s[2], 0}, {s[0] == 0, s[1] == 0, s[2] == 0, true}}, in.scale, y.data, accumulate, context);
}

/// Over the second axis where rows are too short to be read one at a time from far apart: blocks of them are read as they lie.
/// The parts are the sums of kRowsInT blocks, [.., such stretches, rows, columns].
template <class T>
void sum_second_axis(const Pass& pass, const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  // Rows of a block that stay in L1 with their sums.
  constexpr Index kBlock = 2048;
  const auto& [A, B, R, C] = pass.shape();
  const Strides &x = pass.stride(kX), &w = pass.stride(kWeight), &s = pass.stride(kY);
  const Index rows = std::max<Index>(1, kBlock / C), cuts = ceil_div(R, rows), stretches = ceil_div(B, kRowsInT);
  double* sums = context.workspace().take<double>(A * stretches * R * C);
  context.parallel(A * stretches * cuts, [&, B = B, R = R, C = C](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index row = task % cuts * rows, first = task / cuts % stretches * kRowsInT, a = task / cuts / stretches;
    const Extent extent{std::min(rows, R - row), C};
    const auto cells = [&](const T* data, const Strides& stride) -> Cells<const T> {
      if (data == nullptr) return {};
      return {data + a * stride[0] + first * stride[1] + row * stride[2], stride[2], stride[3]};
    };
    const Product<T> product{cells(in.x.data, x), cells(in.weight.data, w), T(1)};
    double* target = sums + ((a * stretches + first / kRowsInT) * R + row) * C;
    T* part = scratch.take<T>(extent.rows * C);
    with_isa(context.isa(), [&]<Isa I>() {
      ArithmeticKernels<T, I>::sum_blocks(product, extent, {std::min(kRowsInT, B - first), x[1], w[1]}, part, target);
    });
  });
  finish({sums, {A, stretches, R, C}, {s[0], 0, s[2], s[3]}, {s[0] == 0, true, false, false}}, in.scale, y.data, accumulate,
         context);
}

/// Can sum_second_axis do it, and is it worth it?
bool short_rows_far_apart(const Pass& pass) {
  constexpr Index kShort = 64;
  const auto dense = [&](int operand) { return pass.stride(operand)[3] == 1 || pass.stride(operand)[3] == 0; };
  const Strides& y = pass.stride(kY);
  return y[1] == 0 && pass.shape()[1] > 1 && y[2] != 0 && pass.shape()[2] > 1 && pass.shape()[3] <= kShort && dense(kX) &&
         dense(kWeight);
}

/// The parts are the sums of the columns of a patch, [.., .., patches along the rows, columns].
template <class T>
void sum_other_axis(Pass pass, const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  // Columns that stay in L1 together with their sums, rows enough for a task.
  const Index columns = std::min<Index>(pass.shape()[3], 1024), rows = std::max(kRowsInT, 16384 / columns);
  int axis = 2;
  while (pass.stride(kY)[std::size_t(axis)] != 0 || pass.shape()[std::size_t(axis)] == 1) --axis;
  pass.cut(axis, {rows, columns});
  const std::array<Index, 4> parts{pass.shape()[0], pass.shape()[1], pass.cuts()[0], pass.shape()[3]};
  double* sums = context.workspace().take<double>(parts[0] * parts[1] * parts[2] * parts[3]);
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Product<T> product = product_of(pass, patch, in, scratch);
    T* part = scratch.take<T>(columns);
    double* target = sums + (patch.outer * parts[2] + patch.row / rows) * parts[3] + patch.column;
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::sum_rows(product, patch.extent, part, target); });
  });
  const Strides& s = pass.stride(kY);
  finish({sums, parts, {s[0], s[1], 0, s[3]}, {s[0] == 0, s[1] == 0, true, false}}, in.scale, y.data, accumulate, context);
}

template <class T>
void multiply(const Pass& pass, const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Product<T> product = product_of(pass, patch, in, scratch);
    const Cells<T> out = write_cells(pass, patch, kY, y.data, accumulate, scratch);
    with_isa(context.isa(), [&]<Isa I>() { ArithmeticKernels<T, I>::product(product, patch.extent, out, accumulate); });
    store_cells(pass, patch, kY, out, y.data);
  });
}

template <class T>
void put(const char* op, View<const T, 4> x, View<T, 4> y, Accumulate accumulate, Context& context) {
  check_shape(op, "y of the shape of x,", y.shape, x.shape);
  multiply<T>(Pass(x.shape, {x.stride, {}, y.stride}), {.x = x}, y, accumulate, context);
}

}  // namespace

template <class T>
void copy(View<const T, 4> x, View<T, 4> y, Context& context) {
  put("copy", x, y, Accumulate::set, context);
}

template <class T>
void add_to(View<const T, 4> x, View<T, 4> y, Context& context) {
  put("add_to", x, y, Accumulate::add, context);
}

template <class T>
void sum_to(const SumInputs<T>& in, View<T, 4> y, Accumulate accumulate, Context& context) {
  const auto& shape = in.x.shape;
  const auto fits = [&](const std::array<Index, 4>& s) {
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (s[axis] != shape[axis] && s[axis] != 1) return false;
    return true;
  };
  if (!fits(y.shape))
    fail("sum_to", "expected y with axes of size 1 or as in x, ", shape_text(shape), ", got ", shape_text(y.shape));
  if (in.weight.present() && !fits(in.weight.shape))
    fail("sum_to", "expected weight with axes of size 1 or as in x, ", shape_text(shape), ", got ", shape_text(in.weight.shape));
  const Pass pass(shape, {in.x.stride, strides_in(in.weight, shape), strides_in(y, shape)});
  if (pass.empty()) {
    const T zero = 0;
    if (accumulate == Accumulate::set) copy<T>({&zero, y.shape, {}}, y, context);
    return;
  }
  const Workspace::Scope scope(context.workspace());
  const auto summed = [&](std::size_t axis) { return pass.stride(kY)[axis] == 0 && pass.shape()[axis] > 1; };
  if (summed(3)) return sum_last_axis(pass, in, y, accumulate, context);
  if (short_rows_far_apart(pass)) return sum_second_axis(pass, in, y, accumulate, context);
  if (summed(0) || summed(1) || summed(2)) return sum_other_axis(pass, in, y, accumulate, context);
  multiply(pass, in, y, accumulate, context);
}

template <class T>
void sum_squares(View<const T, 4> x, View<T, 4> y, Context& context) {
  check_shape("sum_squares", "y", y.shape, {x.shape[0], x.shape[1], x.shape[2], 1});
  sum_to<T>({.x = x, .weight = x}, y, Accumulate::set, context);
}

template <class T>
void sum_squares_vjp(View<const T, 4> x, View<const T, 4> dy, View<T, 4> dx, Accumulate accumulate, Context& context) {
  check_shape("sum_squares_vjp", "dy", dy.shape, {x.shape[0], x.shape[1], x.shape[2], 1});
  check_shape("sum_squares_vjp", "dx of the shape of x,", dx.shape, x.shape);
  sum_to<T>({.x = x, .weight = dy, .scale = 2}, dx, accumulate, context);
}

template void copy(View<const float, 4>, View<float, 4>, Context&);
template void copy(View<const double, 4>, View<double, 4>, Context&);
template void add_to(View<const float, 4>, View<float, 4>, Context&);
template void add_to(View<const double, 4>, View<double, 4>, Context&);
template void sum_to(const SumInputs<float>&, View<float, 4>, Accumulate, Context&);
template void sum_to(const SumInputs<double>&, View<double, 4>, Accumulate, Context&);
template void sum_squares(View<const float, 4>, View<float, 4>, Context&);
template void sum_squares(View<const double, 4>, View<double, 4>, Context&);
template void sum_squares_vjp(View<const float, 4>, View<const float, 4>, View<float, 4>, Accumulate, Context&);
template void sum_squares_vjp(View<const double, 4>, View<const double, 4>, View<double, 4>, Accumulate, Context&);

}  // namespace isomer
