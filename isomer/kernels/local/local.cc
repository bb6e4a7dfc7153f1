#include "isomer/kernels/local/local.h"

#include <algorithm>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/local/local_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

/// Token s as the j-th neighbour of token t; negative s are before the first, kNone is nowhere.
constexpr Index kNone = -(Index{1} << 40);

struct Shape {
  Index B, T, H, D;
  Neighbourhood near;

  [[nodiscard]] Index neighbour(Index t, Index j) const {
    if (!near.image()) return t - j;
    const Index row = t / near.columns + j / 3 - 1, column = t % near.columns + j % 3 - 1;
    const bool inside = row >= 0 && row < near.rows && column >= 0 && column < near.columns;
    return inside ? row * near.columns + column : kNone;
  }
  /// The token whose j-th neighbour is s, or kNone.
  [[nodiscard]] Index of_neighbour(Index s, Index j) const {
    if (near.image()) return neighbour(s, 8 - j);
    return s + j < T ? s + j : kNone;
  }
  [[nodiscard]] Index row(Index b, Index t, Index h) const { return (b * T + t) * H + h; }
  [[nodiscard]] Index rows() const { return B * T * H; }
};

struct Place {
  Index b, t, h;
};

template <class T>
Shape check(const char* op, const LocalInputs<T>& in, const Neighbourhood& near, View<const T, 4> y) {
  const auto [B, L, H, D] = in.v.shape;
  require(near.image() || near.width >= 1, op, "expected width >= 1, got ", near.width);
  if (near.image())
    require(near.rows * near.columns == L && !in.state.present(), op, "expected ", near.rows, " x ", near.columns,
            " tokens and no state, got ", L, in.state.present() ? " and a state" : "");
  check_shape(op, "y", y.shape, in.v.shape);
  const Index tokens = in.weight.shape[1] == 1 ? 1 : L;
  check_shape(op, "weight", in.weight.shape, {B, tokens, H, near.taps() * D});
  if (in.state.present()) check_shape(op, "state", in.state.shape, {B, near.width - 1, H * D});
  return {B, L, H, D, near};
}

/// All inputs as dense rows.
template <class T>
struct Source {
  Shape shape;
  Rows<const T> v, weight, state;
  bool shared;  // one weight for all tokens

  Source(const Shape& s, const LocalInputs<T>& in, Workspace& scratch)
      : shape(s),
        v(read_rows(in.v, {0, s.rows()}, scratch)),
        weight(read_rows(in.weight, {0, row_count(in.weight)}, scratch)),
        state(read_rows(with_leading_axes(in.state), {0, in.state.shape[0] * in.state.shape[1]}, scratch)),
        shared(in.weight.shape[1] == 1) {}

  [[nodiscard]] Place place(Index row) const { return {row / shape.H / shape.T, row / shape.H % shape.T, row % shape.H}; }
  [[nodiscard]] const T* value(const Place& p, Index s) const {
    if (s >= 0) return v.row(shape.row(p.b, s, p.h));
    if (s == kNone || state.data == nullptr) return nullptr;
    return state.row((p.b + 1) * (shape.near.width - 1) + s) + p.h * shape.D;
  }
  [[nodiscard]] const T* weights(const Place& p, Index t, Index j) const {
    return weight.row(shared ? p.b * shape.H + p.h : shape.row(p.b, t, p.h)) + j * shape.D;
  }
};

/// Products that a kernel sums.
template <class T>
struct Terms {
  const T **a, **b;
  Index count = 0;

  Terms(Index most, Workspace& scratch) : a(scratch.take<const T*>(most)), b(scratch.take<const T*>(most)) {}
  void add(const T* x, const T* y) {
    if (x == nullptr || y == nullptr) return;
    a[count] = x;
    b[count++] = y;
  }
};

template <class T>
void sum(Isa isa, Index D, Terms<T>& terms, T* y) {
  with_isa(isa, [&]<Isa I>() { LocalKernels<T, I>::sum(D, terms.count, terms.a, terms.b, y); });
  terms.count = 0;
}

/// f(terms, row, where the row of y goes) for every row of y.
template <class T, class F>
void each_row(View<T, 4> y, Index taps, Context& context, F f) {
  const Index R = row_count(y);
  context.parallel(row_blocks(R), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange range = row_block(block, R);
    const Rows<T> out = write_rows(y, range, scratch);
    Terms<T> terms(taps, scratch);
    for (Index r = range.begin; r < range.end; ++r) f(terms, r, out.row(r));
    store_rows(out, y, range);
  });
}

/// The last width − 1 tokens.
template <class T>
void put_state(const Source<T>& source, View<T, 3> state, Workspace& scratch) {
  const Shape& s = source.shape;
  const Index W = s.near.width - 1, C = s.H * s.D;
  // The old state may be the same memory: its rows are read before they are written, a sequence at a time.
  T* copy = scratch.take<T>(W * C);
  for (Index b = 0; b < s.B; ++b) {
    for (Index i = 0; i < W; ++i)
      for (Index h = 0; h < s.H; ++h) {
        const T* from = source.value({b, 0, h}, s.T - W + i);
        T* to = copy + i * C + h * s.D;
        if (from == nullptr)
          std::fill_n(to, s.D, T(0));
        else
          std::copy_n(from, s.D, to);
      }
    for (Index i = 0; i < W; ++i)
      for (Index c = 0; c < C; ++c) state(b, i, c) = copy[i * C + c];
  }
}

/// dweight [B, 1, H, taps·D]: a sum over tokens, in T over 64 of them and in double beyond.
template <class T>
void shared_weight_vjp(const Source<T>& source, const Rows<const T>& dy, View<T, 4> dweight, Context& context) {
  constexpr Index kTokens = 64;
  const Shape& s = source.shape;
  const Index taps = s.near.taps();
  context.parallel(s.B * s.H * taps, [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const Index j = task % taps, h = task / taps % s.H, b = task / taps / s.H;
    Terms<T> terms(kTokens, scratch);
    T* part = scratch.take<T>(s.D);
    double* total = scratch.take<double>(s.D);
    std::fill_n(total, s.D, 0.0);
    for (Index t = 0; t < s.T; ++t) {
      terms.add(dy.row(s.row(b, t, h)), source.value({b, t, h}, s.neighbour(t, j)));
      if (terms.count < kTokens && t + 1 < s.T) continue;
      sum(context.isa(), s.D, terms, part);
      for (Index d = 0; d < s.D; ++d) total[d] += double(part[d]);
    }
    for (Index d = 0; d < s.D; ++d) dweight(b, 0, h, j * s.D + d) = T(total[d]);
  });
}

/// dx of token t, which may be one before the first, from the final state that keeps it.
template <class T>
void add_kept(const Shape& s, const Place& p, Index t, View<const T, 3> dfinal, T* dx) {
  const Index row = t - s.T + s.near.width - 1;
  if (!dfinal.present() || row < 0) return;
  for (Index d = 0; d < s.D; ++d) dx[d] += dfinal(p.b, row, p.h * s.D + d);
}

/// Of the tokens before the first.
template <class T>
void state_vjp(const Source<T>& source, const Rows<const T>& dy, View<const T, 3> dfinal, View<T, 3> dstate, Context& context) {
  const Shape& s = source.shape;
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  Terms<T> terms(s.near.taps(), scratch);
  T* dx = scratch.take<T>(s.D);
  const Index W = s.near.width - 1;
  for (Index b = 0; b < s.B; ++b)
    for (Index i = 0; i < W; ++i)
      for (Index h = 0; h < s.H; ++h) {
        const Index before = i - W;
        for (Index j = -before; j <= W && before + j < s.T; ++j)
          terms.add(source.weights({b, 0, h}, before + j, j), dy.row(s.row(b, before + j, h)));
        sum(context.isa(), s.D, terms, dx);
        add_kept(s, {b, 0, h}, before, dfinal, dx);
        for (Index d = 0; d < s.D; ++d) dstate(b, i, h * s.D + d) = dx[d];
      }
}

}  // namespace

template <class T>
void local_sum(const LocalInputs<T>& in, const Neighbourhood& near, const LocalOutputs<T>& out, Context& context) {
  const Shape s = check<T>("local_sum", in, near, out.y);
  if (out.state.present()) check_shape("local_sum", "final state", out.state.shape, {s.B, near.width - 1, s.H * s.D});
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Source<T> source(s, in, own);
  each_row(out.y, near.taps(), context, [&](Terms<T>& terms, Index row, T* y) {
    const Place p = source.place(row);
    for (Index j = 0; j < near.taps(); ++j) terms.add(source.weights(p, p.t, j), source.value(p, s.neighbour(p.t, j)));
    sum(context.isa(), s.D, terms, y);
  });
  if (out.state.present() && !near.image()) put_state(source, out.state, own);
}

template <class T>
void local_sum_vjp(const LocalInputs<T>& in, const Neighbourhood& near, const LocalUpstream<T>& upstream,
                   const LocalGradients<T>& gradients, Context& context) {
  const View<const T, 4> dy = upstream.dy;
  const Shape s = check<T>("local_sum_vjp", in, near, dy);
  const std::array<Index, 3> state_shape{s.B, near.width - 1, s.H * s.D};
  if (upstream.dstate.present()) check_shape("local_sum_vjp", "upstream dstate", upstream.dstate.shape, state_shape);
  if (gradients.dstate.present()) check_shape("local_sum_vjp", "dstate", gradients.dstate.shape, state_shape);
  Workspace& own = context.workspace();
  const Workspace::Scope scope(own);
  const Source<T> source(s, in, own);
  const Rows<const T> up = read_rows(dy, {0, s.rows()}, own);
  if (gradients.dv.present()) {
    check_shape("local_sum_vjp", "dv", gradients.dv.shape, in.v.shape);
    each_row(gradients.dv, near.taps(), context, [&](Terms<T>& terms, Index row, T* dv) {
      const Place p = source.place(row);
      for (Index j = 0; j < near.taps(); ++j)
        if (const Index t = s.of_neighbour(p.t, j); t != kNone) terms.add(source.weights(p, t, j), up.row(s.row(p.b, t, p.h)));
      sum(context.isa(), s.D, terms, dv);
      add_kept(s, p, p.t, upstream.dstate, dv);
    });
  }
  if (gradients.dstate.present()) state_vjp(source, up, upstream.dstate, gradients.dstate, context);
  if (!gradients.dweight.present()) return;
  check_shape("local_sum_vjp", "dweight", gradients.dweight.shape, in.weight.shape);
  if (source.shared) return shared_weight_vjp(source, up, gradients.dweight, context);
  each_row(gradients.dweight, 1, context, [&](Terms<T>& terms, Index row, T* dweight) {
    const Place p = source.place(row);
    for (Index j = 0; j < near.taps(); ++j) {
      terms.add(up.row(row), source.value(p, s.neighbour(p.t, j)));
      sum(context.isa(), s.D, terms, dweight + j * s.D);
    }
  });
}

template void local_sum(const LocalInputs<float>&, const Neighbourhood&, const LocalOutputs<float>&, Context&);
template void local_sum(const LocalInputs<double>&, const Neighbourhood&, const LocalOutputs<double>&, Context&);
template void local_sum_vjp(const LocalInputs<float>&, const Neighbourhood&, const LocalUpstream<float>&,
                            const LocalGradients<float>&, Context&);
template void local_sum_vjp(const LocalInputs<double>&, const Neighbourhood&, const LocalUpstream<double>&,
                            const LocalGradients<double>&, Context&);

}  // namespace isomer
