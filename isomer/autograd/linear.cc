#include "isomer/autograd/linear.h"

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/gemm/gemm.h"

namespace isomer::ops {

namespace {
/// A value [B, T, H, D] as matrices of rows that one weight takes: as few as the strides allow.
struct Cut {
  enum class Kind { whole, heads, sequences } kind;
  Index count;

  template <class T>
  Cut(View<T, 4> x, bool shared) {
    const auto& [B, L, H, D] = x.shape;
    const bool even_sequences = B == 1 || x.stride[0] == L * x.stride[1], even_heads = H == 1 || x.stride[1] == H * x.stride[2];
    kind = !even_sequences ? Kind::sequences : shared && even_heads ? Kind::whole : Kind::heads;
    count = kind == Kind::whole ? 1 : kind == Kind::heads ? H : B * H;
  }
  template <class T>
  [[nodiscard]] View<T, 2> matrix(View<T, 4> x, Index i) const {
    const auto& [B, L, H, D] = x.shape;
    if (kind == Kind::whole) return {x.data, {B * L * H, D}, {H == 1 ? x.stride[1] : x.stride[2], x.stride[3]}};
    if (kind == Kind::heads) return {x.at(0, 0, i), {B * L, D}, {x.stride[1], x.stride[3]}};
    return {x.at(i / H, 0, i % H), {L, D}, {x.stride[1], x.stride[3]}};
  }
};

/// The weight [1, H or 1, N, K] of matrix i.
template <class T>
View<T, 2> weight_of(View<T, 4> w, Index i) {
  return {w.at(0, i % w.shape[1]), {w.shape[2], w.shape[3]}, {w.stride[2], w.stride[3]}};
}

/// The bias [1, 1, H or 1, N] of matrix i, if there is one.
template <class T>
View<const T, 1> bias_of(Var<T> bias, Index i) {
  if (!bias.present()) return {};
  return {bias.value.at(0, 0, i % bias.dim(2)), {bias.dim(3)}, {bias.value.stride[3]}};
}

template <class T>
T beta_of(Accumulate mode) {
  return mode == Accumulate::add ? T(1) : T(0);
}

/// A weight [1, H or 1, 1, K] as rows for the heads, [1, 1, H or 1, K].
template <class T>
View<T, 4> head_rows(View<T, 4> w) {
  return {w.data, {1, 1, w.shape[1], w.shape[3]}, {0, 0, w.stride[1], w.stride[3]}};
}

/// One number for each head: a sum over the last axis. As products these would be matrices of one column, one for each head.
template <class T>
Var<T> dot_heads(Tape<T>& tape, Var<T> x, Var<T> weight) {
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), 1}, {x, weight});
  tape.timed(Profile::Kind::product, [&] {
    sum_to<T>({.x = x.value, .weight = head_rows<const T>(weight.value)}, y.value, Accumulate::set, tape.context());
  });
  tape.record({y}, [=](Tape<T>& back) {
    View<const T, 4> dy = back.arrived(y);
    dy.shape[3] = x.dim(3);
    dy.stride[3] = 0;
    const auto dx = back.target(x), dw = back.target(weight);
    back.timed(Profile::Kind::product, [&] {
      if (dx.present()) sum_to<T>({.x = dy, .weight = head_rows<const T>(weight.value)}, dx.view, dx.mode, back.context());
      if (dw.present()) sum_to<T>({.x = dy, .weight = x.value}, head_rows(dw.view), dw.mode, back.context());
    });
  });
  return y;
}

template <class T>
Var<T> linear_heads(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias) {
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), weight.dim(2)}, {x, weight, bias});
  const Cut cut(x.value, weight.dim(1) == 1);
  tape.timed(Profile::Kind::product, [&] {
    for (Index i = 0; i < cut.count; ++i)
      weight.with_numbers([&](auto w) {
        matmul(cut.matrix(x.value, i), transposed(weight_of(w, i)), cut.matrix(y.value, i), tape.context(),
               {.bias = bias_of(bias, i), .rows = weight.stored() ? weight.slot->rows : RowsOfA::exact});
      });
  });
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    const auto dx = back.target(x), dw = back.target(weight), db = back.target(bias);
    back.timed(Profile::Kind::product, [&] {
      for (Index i = 0; i < cut.count; ++i) {
        const View<const T, 2> up = cut.matrix(dy, i);
        if (dx.present())
          weight.with_numbers([&](auto w) {
            matmul(up, weight_of(w, i), cut.matrix(dx.view, i), back.context(), {.beta = beta_of<T>(dx.mode)});
          });
        // Matrices that share a weight add to its gradient.
        const Accumulate mode = i < weight.dim(1) ? dw.mode : Accumulate::add;
        if (dw.present())
          matmul(transposed(up), View<const T, 2>(cut.matrix(x.value, i)), weight_of(dw.view, i), back.context(),
                 {.beta = beta_of<T>(mode)});
      }
    });
    if (db.present()) sum_to<T>({.x = dy}, db.view, db.mode, back.context());
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
  require((weight.dim(1) == 1 || x.dim(2) == weight.dim(1)) && x.dim(3) == weight.dim(3), "head_linear", "expected x [B, T, ",
          weight.dim(1), ", ", weight.dim(3), "], got [", x.dim(0), ", ", x.dim(1), ", ", x.dim(2), ", ", x.dim(3), "]");
  if (weight.dim(2) == 1 && !bias.present() && !weight.stored()) return dot_heads(tape, x, weight);
  return linear_heads(tape, x, weight, bias);
}

template Var<float> linear(Tape<float>&, Var<float>, Var<float>, Var<float>);
template Var<double> linear(Tape<double>&, Var<double>, Var<double>, Var<double>);
template Var<float> head_linear(Tape<float>&, Var<float>, Var<float>, Var<float>);
template Var<double> head_linear(Tape<double>&, Var<double>, Var<double>, Var<double>);

}  // namespace isomer::ops
