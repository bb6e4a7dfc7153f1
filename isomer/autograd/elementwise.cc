#include "isomer/autograd/elementwise.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/features.h"
#include "isomer/kernels/elementwise/gated.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/rows.h"
#include "isomer/laws/layout.h"

namespace isomer::ops {

template <class T>
Var<T> unary(Tape<T>& tape, Unary f, Var<T> x, UnaryOptions options) {
  if (f == Unary::identity) return x;
  const Var<T> y = tape.make(x.shape(), {x});
  unary<T>(f, options, x.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    unary_vjp<T>(f, options, x.value, back.arrived(y), dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> binary(Tape<T>& tape, Binary f, Var<T> a, Var<T> b) {
  const Var<T> y = tape.make(broadcast(a.shape(), b.shape()), {a, b});
  binary<T>(f, a.value, b.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    // One after the other: a and b may be the same value.
    if (const auto da = back.target(a); da.present())
      binary_vjp<T>(f, a.value, b.value, dy, {.da = da.view, .accumulate_a = da.mode}, back.context());
    if (const auto db = back.target(b); db.present())
      binary_vjp<T>(f, a.value, b.value, dy, {.db = db.view, .accumulate_b = db.mode}, back.context());
  });
  return y;
}

template <class T>
Var<T> gated(Tape<T>& tape, Unary f, Var<T> gate, Var<T> x) {
  if (!is_gate(f) || gate.shape() != x.shape()) return multiply(tape, unary(tape, f, gate), x);
  const Var<T> y = tape.make(x.shape(), {gate, x});
  gated<T>(f, gate.value, x.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    const auto dg = back.target(gate), dx = back.target(x);
    const auto run = [&](const GatedGradients<T>& gradients) {
      gated_vjp<T>(f, gate.value, x.value, dy, gradients, back.context());
    };
    if (gate.slot != x.slot) return run({.dg = dg.view, .dx = dx.view, .accumulate_g = dg.mode, .accumulate_x = dx.mode});
    // Gradients of one value may overlap: one after the other.
    run({.dg = dg.view, .accumulate_g = dg.mode});
    run({.dx = dx.view, .accumulate_x = dx.mode});
  });
  return y;
}

template <class T>
Var<T> repeat(Tape<T>& tape, Var<T> x, Index times) {
  require(x.dim(3) == 1, "repeat", "expected one number of each head, got ", x.dim(3));
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), times}, {x});
  const auto& s = x.value.stride;
  copy<T>({x.value.data, y.shape(), {s[0], s[1], s[2], 0}}, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    sum_to<T>({.x = back.arrived(y)}, dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
constexpr T kNothing = 0;

template <class T>
Var<T> gather(Tape<T>& tape, Var<T> x, std::span<const Index> places) {
  for (const Index place : places)
    require(place >= 0 && place < x.dim(3), "gather", "expected places from 0 to ", x.dim(3) - 1, ", got ", place);
  const auto each = [places](const Shape4& shape, auto f) {
    for (Index b = 0; b < shape[0]; ++b)
      for (Index t = 0; t < shape[1]; ++t)
        for (Index h = 0; h < shape[2]; ++h)
          for (std::size_t n = 0; n < places.size(); ++n) f(b, t, h, Index(n), places[n]);
  };
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), Index(places.size())}, {x});
  each(y.shape(), [&](Index b, Index t, Index h, Index n, Index place) { y.value(b, t, h, n) = x.value(b, t, h, place); });
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    if (dx.mode == Accumulate::set) copy<T>(View<const T, 4>{&kNothing<T>, x.shape(), {}}, dx.view, back.context());
    const View<const T, 4> dy = back.arrived(y);
    each(y.shape(), [&](Index b, Index t, Index h, Index n, Index place) { dx.view(b, t, h, place) += dy(b, t, h, n); });
  });
  return y;
}

template <class T>
Var<T> softmax(Tape<T>& tape, Var<T> x) {
  const Var<T> y = tape.make(x.shape(), {x});
  softmax<T>(x.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    softmax_vjp<T>(y.value, back.arrived(y), dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> share_of_heads(Tape<T>& tape, Var<T> x, Index begin, Index end) {
  const auto transposed = [](auto view) {
    std::swap(view.shape[2], view.shape[3]);
    std::swap(view.stride[2], view.stride[3]);
    return view;
  };
  const Var<T> y = tape.make({x.dim(0), x.dim(1), 1, x.dim(3)}, {x});
  const View<T, 4> shares = contiguous(tape.template keep<T>(x.value.size()), x.shape());
  softmax<T>(transposed(x.value), transposed(shares), tape.context());
  const auto inside = [=](Index h) { return h >= begin && h < end; };
  each_element(y.shape(), [&](const auto& i) {
    double sum = 0, all = 0;
    for (Index h = 0; h < x.dim(2); ++h) {
      const double share = double(shares(i[0], i[1], h, i[3]));
      all += share;
      sum += inside(h) ? share : 0;
    }
    y.value(i[0], i[1], 0, i[3]) = T(sum / all);
  });
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    const auto dx = back.target(x);
    if (!dx.present()) return;
    each_element(x.shape(), [&](const auto& i) {
      const auto [b, t, h, d] = i;
      const T slope = shares(b, t, h, d) * (T(inside(h)) - y.value(b, t, 0, d)) * dy(b, t, 0, d);
      T& to = dx.view(b, t, h, d);
      to = dx.mode == Accumulate::set ? slope : to + slope;
    });
  });
  return y;
}

template <class T>
Var<T> square_sum(Tape<T>& tape, Var<T> x) {
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), 1}, {x});
  sum_squares<T>(x.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    sum_squares_vjp<T>(x.value, back.arrived(y), dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> largest(Tape<T>& tape, Var<T> x, bool over_tokens, const Sequences& sequences) {
  const Index B = x.dim(0), L = x.dim(1), H = x.dim(2), D = x.dim(3);
  require(D > 0, "largest", "expected at least one number");
  const Var<T> y = tape.make({B, L, H, 1}, {});
  const Index rows = B * L * H;
  tape.context().parallel(row_blocks(rows), [&](Index block, Workspace&) {
    const RowRange range = row_block(block, rows);
    for (Index row = range.begin; row < range.end; ++row) {
      T most = x.value(row / H / L, row / H % L, row % H, 0);
      for (Index d = 1; d < D; ++d) most = std::max(most, x.value(row / H / L, row / H % L, row % H, d));
      y.value.data[row] = most;
    }
  });
  if (!over_tokens) return y;
  for (const Sequence& one : isomer::sequences("largest", B, L, sequences.offsets))
    for (Index h = 0; h < H && one.length > 0; ++h) {
      T most = y.value(one.batch, one.first, h, 0);
      for (Index t = 1; t < one.length; ++t) most = std::max(most, y.value(one.batch, one.first + t, h, 0));
      for (Index t = 0; t < one.length; ++t) y.value(one.batch, one.first + t, h, 0) = most;
    }
  return y;
}

template <class T>
Var<T> taylor_features(Tape<T>& tape, Var<T> x) {
  const Var<T> y = tape.make({x.dim(0), x.dim(1), x.dim(2), taylor_size(x.dim(3))}, {x});
  taylor_features<T>(x.value, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    taylor_features_vjp<T>(x.value, back.arrived(y), dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> concat(Tape<T>& tape, std::span<const Var<T>> parts) {
  require(!parts.empty(), "concat", "expected at least one part, got none");
  Shape4 shape = parts[0].shape();
  for (const Var<T>& part : parts.subspan(1)) shape[3] += part.dim(3);
  auto* kept = tape.template keep<Var<T>>(Index(parts.size()));
  std::copy(parts.begin(), parts.end(), kept);
  const std::span<const Var<T>> all(kept, parts.size());
  const Var<T> y = tape.make(shape, all);
  Index begin = 0;
  for (const Var<T>& x : all) {
    copy<T>(x.value, slice(y.value, 3, begin, x.dim(3)), tape.context());
    begin += x.dim(3);
  }
  tape.record({y}, [=](Tape<T>& back) {
    const View<const T, 4> dy = back.arrived(y);
    Index at = 0;
    for (const Var<T>& x : all) {
      if (const auto dx = back.target(x); dx.present())
        sum_to<T>({.x = slice(dy, 3, at, x.dim(3))}, dx.view, dx.mode, back.context());
      at += x.dim(3);
    }
  });
  return y;
}

template Var<float> unary(Tape<float>&, Unary, Var<float>, UnaryOptions);
template Var<double> unary(Tape<double>&, Unary, Var<double>, UnaryOptions);
template Var<float> binary(Tape<float>&, Binary, Var<float>, Var<float>);
template Var<double> binary(Tape<double>&, Binary, Var<double>, Var<double>);
template Var<float> gated(Tape<float>&, Unary, Var<float>, Var<float>);
template Var<double> gated(Tape<double>&, Unary, Var<double>, Var<double>);
template Var<float> repeat(Tape<float>&, Var<float>, Index);
template Var<double> repeat(Tape<double>&, Var<double>, Index);
template Var<float> gather(Tape<float>&, Var<float>, std::span<const Index>);
template Var<double> gather(Tape<double>&, Var<double>, std::span<const Index>);
template Var<float> softmax(Tape<float>&, Var<float>);
template Var<double> softmax(Tape<double>&, Var<double>);
template Var<float> share_of_heads(Tape<float>&, Var<float>, Index, Index);
template Var<double> share_of_heads(Tape<double>&, Var<double>, Index, Index);
template Var<float> square_sum(Tape<float>&, Var<float>);
template Var<double> square_sum(Tape<double>&, Var<double>);
template Var<float> largest(Tape<float>&, Var<float>, bool, const Sequences&);
template Var<double> largest(Tape<double>&, Var<double>, bool, const Sequences&);
template Var<float> taylor_features(Tape<float>&, Var<float>);
template Var<double> taylor_features(Tape<double>&, Var<double>);
template Var<float> concat(Tape<float>&, std::span<const Var<float>>);
template Var<double> concat(Tape<double>&, std::span<const Var<double>>);

}  // namespace isomer::ops
