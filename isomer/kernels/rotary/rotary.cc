#include "isomer/kernels/rotary/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/rotary/rotary_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

void rotary_frequencies(const RotaryPositions& positions, Index half, double* frequency) {
  const RotaryScaling& s = positions.scaling;
  for (Index n = 0; n < half; ++n) {
    const double whole = std::pow(positions.base, -double(n) / double(half));
    // How much of the frequency stays, from 0 for long waves to 1 for short ones.
    const double turns = s.length * whole / (2 * std::numbers::pi);
    const double stays = s.length > 0 ? std::clamp((turns - s.low) / (s.high - s.low), 0.0, 1.0) : 0.0;
    frequency[n] = s.factor == 1 ? whole : whole * (stays + (1 - stays) / s.factor);
  }
}

namespace {

enum class Direction { forward, back };

template <class T>
void check_pair(const char* op, View<const T, 4> x, const char* name, View<const T, 4> y) {
  require(x.shape[3] % 2 == 0, op, "expected an even D, got ", x.shape[3]);
  check_shape(op, name, y.shape, x.shape);
}

template <class T>
void check_angle(const char* op, View<const T, 4> x, const char* name, View<const T, 4> a) {
  const auto& s = x.shape;
  require(a.shape[0] == s[0] && a.shape[1] == s[1] && (a.shape[2] == 1 || a.shape[2] == s[2]) && 2 * a.shape[3] == s[3], op,
          "expected ", name, " [", s[0], ", ", s[1], ", 1 or ", s[2], ", ", s[3] / 2, "], got [", a.shape[0], ", ", a.shape[1],
          ", ", a.shape[2], ", ", a.shape[3], "]");
}

/// Cosines and sines for every token, [B or 1, T, H or 1, D/2], dense.
template <class T>
struct TurnTable {
  const T *cos, *sin;
  Index half;
  Index H, tokens;  // heads of x; tokens after which the table begins again
  bool per_head;

  [[nodiscard]] Turn<T> row(Index r) const {
    const Index token = r / H % tokens, at = (per_head ? token * H + r % H : token) * half;
    return {cos + at, sin + at};
  }
};

/// fill(row, angles) writes the D/2 angles of one row of the table.
template <class T, class F>
TurnTable<T> make_table(View<const T, 4> x, Index tokens, bool per_head, F fill, Context& context) {
  const Index half = x.shape[3] / 2, rows = tokens * (per_head ? x.shape[2] : 1);
  T* cos = context.workspace().template take<T>(rows * half);
  T* sin = context.workspace().template take<T>(rows * half);
  context.parallel(row_blocks(rows), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    double* angle = scratch.take<double>(half);
    const RowRange range = row_block(block, rows);
    for (Index r = range.begin; r < range.end; ++r) {
      fill(r, angle);
      with_isa(context.isa(), [&]<Isa I>() { RotaryKernels<T, I>::sincos(half, angle, cos + r * half, sin + r * half); });
    }
  });
  return {cos, sin, half, x.shape[2], tokens, per_head};
}

template <class T>
TurnTable<T> table_of(const char* op, View<const T, 4> x, RotaryPositions positions, Context& context) {
  require(positions.base > 0, op, "expected base > 0, got ", positions.base);
  require(positions.scaling.factor > 0, op, "expected a scaling by a factor > 0, got ", positions.scaling.factor);
  const Index half = x.shape[3] / 2;
  double* frequency = context.workspace().take<double>(half);
  rotary_frequencies(positions, half, frequency);
  return make_table(
      x, x.shape[1], false,
      [&](Index t, double* angle) {
        for (Index n = 0; n < half; ++n) {
          angle[n] = double(positions.offset + t) * frequency[n];
          // Whole turns are taken off far from the origin, where sincos ends.
          if (std::abs(angle[n]) > 0x1p19) angle[n] = std::remainder(angle[n], 2 * std::numbers::pi);
        }
      },
      context);
}

template <class T>
TurnTable<T> table_of(const char* op, View<const T, 4> x, View<const T, 4> given, Context& context) {
  check_angle(op, x, "angle", given);
  const Rows<const T> rows = rows_of(given);
  return make_table(
      x, x.shape[0] * x.shape[1], given.shape[2] != 1,
      [&](Index r, double* angle) {
        for (Index n = 0; n < given.shape[3]; ++n) angle[n] = double(rows.row(r)[n * given.stride[3]]);
      },
      context);
}

template <class T>
void rotate_all(View<const T, 4> x, const TurnTable<T>& table, Direction direction, View<T, 4> y, Context& context) {
  each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    const auto rotate = direction == Direction::forward ? RotaryKernels<T, I>::rotate : RotaryKernels<T, I>::rotate_back;
    for (Index r = range.begin; r < range.end; ++r) rotate(table.half, table.row(r), in[0].row(r), out.row(r));
  });
}

/// A task has whole tokens, so that heads that share an angle are summed in one place, in order.
template <class T>
void angle_gradient(View<const T, 4> x, View<const T, 4> dy, const TurnTable<T>& table, View<T, 4> dangle, Context& context) {
  const Index H = x.shape[2], tokens = x.shape[0] * x.shape[1], per_token = table.per_head ? H : 1;
  context.parallel(row_blocks(tokens), [&](Index block, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const RowRange token = row_block(block, tokens), range{token.begin * H, token.end * H};
    const RowRange out_range{token.begin * per_token, token.end * per_token};
    const Rows<const T> in = read_rows(x, range, scratch), up = read_rows(dy, range, scratch);
    const Rows<T> out = write_rows(dangle, out_range, scratch);
    for (Index r = out_range.begin; r < out_range.end; ++r) std::fill_n(out.row(r), table.half, T(0));
    with_isa(context.isa(), [&]<Isa I>() {
      for (Index r = range.begin; r < range.end; ++r)
        RotaryKernels<T, I>::add_angle_gradient(table.half, table.row(r), in.row(r), up.row(r),
                                                out.row(table.per_head ? r : r / H));
    });
    store_rows(out, dangle, out_range);
  });
}

template <class T, class Angles>
void turn(const char* op, View<const T, 4> x, Angles angles, Direction direction, const char* name, View<T, 4> y,
          Context& context) {
  check_pair<T>(op, x, name, y);
  const Workspace::Scope scope(context.workspace());
  const TurnTable<T> table = table_of(op, x, angles, context);
  if (x.size() != 0) rotate_all(x, table, direction, y, context);
}

}  // namespace

template <class T>
void rotary(View<const T, 4> x, RotaryPositions positions, View<T, 4> y, Context& context) {
  turn("rotary", x, positions, Direction::forward, "y of the shape of x,", y, context);
}

template <class T>
void rotary(View<const T, 4> x, View<const T, 4> angle, View<T, 4> y, Context& context) {
  turn("rotary", x, angle, Direction::forward, "y of the shape of x,", y, context);
}

template <class T>
void rotary_vjp(View<const T, 4> dy, RotaryPositions positions, View<T, 4> dx, Context& context) {
  turn("rotary_vjp", dy, positions, Direction::back, "dx of the shape of x,", dx, context);
}

template <class T>
void rotary_vjp(View<const T, 4> x, View<const T, 4> dy, View<const T, 4> angle, RotaryGradients<T> gradients, Context& context) {
  check_pair("rotary_vjp", x, "dy of the shape of x,", dy);
  const Workspace::Scope scope(context.workspace());
  const TurnTable<T> table = table_of("rotary_vjp", x, angle, context);
  if (gradients.dangle.present()) {
    check_angle<T>("rotary_vjp", x, "dangle", gradients.dangle);
    require(gradients.dangle.shape[2] == angle.shape[2], "rotary_vjp", "expected dangle with ", angle.shape[2],
            " heads, as angle has, got ", gradients.dangle.shape[2]);
    if (gradients.dangle.size() != 0) angle_gradient(x, dy, table, gradients.dangle, context);
  }
  if (gradients.dx.present()) {
    check_pair<T>("rotary_vjp", x, "dx of the shape of x,", gradients.dx);
    if (x.size() != 0) rotate_all(dy, table, Direction::back, gradients.dx, context);
  }
}

template void rotary(View<const float, 4>, RotaryPositions, View<float, 4>, Context&);
template void rotary(View<const double, 4>, RotaryPositions, View<double, 4>, Context&);
template void rotary(View<const float, 4>, View<const float, 4>, View<float, 4>, Context&);
template void rotary(View<const double, 4>, View<const double, 4>, View<double, 4>, Context&);
template void rotary_vjp(View<const float, 4>, RotaryPositions, View<float, 4>, Context&);
template void rotary_vjp(View<const double, 4>, RotaryPositions, View<double, 4>, Context&);
template void rotary_vjp(View<const float, 4>, View<const float, 4>, View<const float, 4>, RotaryGradients<float>, Context&);
template void rotary_vjp(View<const double, 4>, View<const double, 4>, View<const double, 4>, RotaryGradients<double>, Context&);

}  // namespace isomer
