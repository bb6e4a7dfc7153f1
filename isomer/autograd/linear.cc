#include "isomer/autograd/linear.h"

#include "isomer/base/error.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {
/// Head h of [B, T, H, D] as a matrix [B·T, D]; batches must follow each other evenly.
template <class T>
View<T, 2> rows_of_head(View<T, 4> x, Index h) {
  ISOMER_ASSERT(x.shape[0] == 1 || x.stride[0] == x.shape[1] * x.stride[1], "tokens of all sequences are evenly spaced");
  return {x.at(0, 0, h), {x.shape[0] * x.shape[1], x.shape[3]}, {x.stride[1], x.stride[3]}};
}

/// Head h of a weight [1, H, N, K] (or of the only one).
template <class T>
View<T, 2> matrix_of(View<T, 4> w, Index h) {
  return {w.at(0, h), {w.shape[2], w.shape[3]}, {w.stride[2], w.stride[3]}};
}

template <class T>
T beta_of(Accumulate mode) {
  return mode == Accumulate::add ? T(1) : T(0);
}

template <class T>
void add_bias(View<T, 4> y, View<const T, 4> bias, Context& context) {
  const Index R = row_count(y), H = y.shape[2], N = y.shape[3];
  context.parallel(row_blocks(R), [&](Index block, Workspace&) {
    const RowRange range = row_block(block, R);
    const Rows<T> rows = rows_of(y);
    for (Index r = range.begin; r < range.end; ++r) {
      T* row = rows.row(r);
      const T* b = bias.at(0, 0, r % H);
      for (Index n = 0; n < N; ++n) row[n] += b[n];
    }
  });
}

/// dbias [1, 1, H, N] from dy: sums over tokens, in double and in order for each channel.
template <class T>
void bias_vjp(View<const T, 4> dy, GradientTarget<T> into, Context& context) {
  if (!into.present()) return;
  constexpr Index kChannels = 64;
  const Index H = dy.shape[2], N = dy.shape[3], blocks = ceil_div(N, kChannels);
  context.parallel(H * blocks, [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index h = task / blocks, begin = task % blocks * kChannels, n = std::min(kChannels, N - begin);
    double* sum = scratch.take<double>(n);
    std::fill_n(sum, n, 0.0);
    for (Index b = 0; b < dy.shape[0]; ++b)
      for (Index t = 0; t < dy.shape[1]; ++t) {
        const T* row = dy.at(b, t, h, begin);
        for (Index i = 0; i < n; ++i) sum[i] += double(row[i * dy.stride[3]]);
      }
    for (Index i = 0; i < n; ++i) {
      T& target = into.view(0, 0, h, begin + i);
      target = T(sum[i] + (into.mode == Accumulate::add ? double(target) : 0.0));
    }
  });
}

template <class T>
Var<T> linear_heads(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias) {
  const Index H = x.dim(2), N = weight.dim(2);
  const Var<T> y = tape.make({x.dim(0), x.dim(1), H, N}, {x, weight, bias});
  tape.timed(Profile::Kind::product, [&] {
    for (Index h = 0; h < H; ++h)
      matmul(View<const T, 2>(rows_of_head(x.value, h)), transposed(View<const T, 2>(matrix_of(weight.value, h))),
             rows_of_head(y.value, h), tape.context());
  });
  if (bias.present()) add_bias<T>(y.value, bias.value, tape.context());
  tape.record({y}, [x, weight, bias, y](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    const auto dx = back.target(x), dw = back.target(weight);
    back.timed(Profile::Kind::product, [&] {
      for (Index h = 0; h < y.dim(2); ++h) {
        const View<const T, 2> up = rows_of_head(dy, h);
        if (dx.present())
          matmul(up, View<const T, 2>(matrix_of(weight.value, h)), rows_of_head(dx.view, h), back.context(),
                 {.beta = beta_of<T>(dx.mode)});
        if (dw.present())
          matmul(transposed(up), View<const T, 2>(rows_of_head(x.value, h)), matrix_of(dw.view, h), back.context(),
                 {.beta = beta_of<T>(dw.mode)});
      }
    });
    bias_vjp<T>(dy, back.target(bias), back.context());
  });
  return y;
}
}  // namespace

template <class T>
Var<T> linear(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias) {
  require(x.dim(2) == 1 && weight.dim(1) == 1 && x.dim(3) == weight.dim(3), "linear", "expected x [B, T, 1, ", weight.dim(3),
          "], got [", x.dim(0), ", ", x.dim(1), ", ", x.dim(2), ", ", x.dim(3), "]");
  return linear_heads(tape, x, weight, bias);
}

template <class T>
Var<T> head_linear(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias) {
  require(x.dim(2) == weight.dim(1) && x.dim(3) == weight.dim(3), "head_linear", "expected x [B, T, ", weight.dim(1), ", ",
          weight.dim(3), "], got [", x.dim(0), ", ", x.dim(1), ", ", x.dim(2), ", ", x.dim(3), "]");
  return linear_heads(tape, x, weight, bias);
}

template Var<float> linear(Tape<float>&, Var<float>, Var<float>, Var<float>);
template Var<double> linear(Tape<double>&, Var<double>, Var<double>, Var<double>);
template Var<float> head_linear(Tape<float>&, Var<float>, Var<float>, Var<float>);
template Var<double> head_linear(Tape<double>&, Var<double>, Var<double>, Var<double>);

}  // namespace isomer
