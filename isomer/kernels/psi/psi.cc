#include "isomer/kernels/psi/psi.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/psi/psi_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

// Numbers of a task: enough to pay for its sums between corners.
constexpr Index kNumbers = 8192;

template <class T>
void check(const char* op, const PsiTable<T>& table, const std::array<Index, 4>& u, const std::array<Index, 4>& y) {
  check_shape(op, "y", y, {u[0], u[1], u[2], u[3] * table.outputs});
}

/// Units j of network g, numbered through.
template <class T>
struct Unit {
  Index g, j;
  Unit(const PsiParameters<T>& p, Index i) : g(i / p.w1.shape[1]), j(i % p.w1.shape[1]) {}
};

/// Corners in order and their ranks; how many there are.
template <class T>
Index sort_corners(const PsiParameters<T>& p, T* corners, Index* rank, Workspace& scratch) {
  const Workspace::Scope scope(scratch);
  const Index units = p.w1.size();
  struct Corner {
    T at;
    Index unit;
  };
  Corner* list = scratch.take<Corner>(units);
  Index count = 0;
  for (Index i = 0; i < units; ++i) {
    const Unit<T> unit(p, i);
    rank[i] = -1;
    const double at = -double(p.b1(unit.g, unit.j)) / double(p.w1(unit.g, unit.j));
    // A unit without a corner (w1 = 0, or so small that its corner is out of reach) is on or off everywhere. So is a NaN.
    if (std::abs(at) < double(std::numeric_limits<T>::max())) list[count++] = {T(at), i};
  }
  std::sort(list, list + count, [](const Corner& a, const Corner& b) { return a.at != b.at ? a.at < b.at : a.unit < b.unit; });
  for (Index i = 0; i < count; ++i) {
    corners[i] = list[i].at;
    rank[list[i].unit] = i;
  }
  return count;
}

/// The segments of all numbers in a block of rows, row by row.
template <class T>
const std::int32_t* segments_of(const PsiTable<T>& table, const Rows<const T>& u, RowRange range, Index M, Isa isa,
                                Workspace& scratch) {
  const Index rows = range.end - range.begin;
  std::int32_t* segments = scratch.take<std::int32_t>(rows * M);
  // Rows of a few numbers are searched together where they lie behind each other.
  const bool dense = u.inner[0] == 0 && u.stride[0] == M;
  with_isa(isa, [&]<Isa I>() {
    if (dense) return PsiKernels<T, I>::find(table, rows * M, u.row(range.begin), segments);
    for (Index r = 0; r < rows; ++r) PsiKernels<T, I>::find(table, M, u.row(range.begin + r), segments + r * M);
  });
  return segments;
}

/// f(task, rows, scratch) for blocks of rows with about kNumbers numbers.
struct Blocks {
  Index rows, each, count;

  Blocks(Index all, Index numbers)
      : rows(all), each(std::max<Index>(1, kNumbers / std::max<Index>(numbers, 1))), count(ceil_div(rows, each)) {}
  template <class F>
  void run(Context& context, F f) const {
    context.parallel(count, [&](Index task, Workspace& scratch) {
      const Workspace::Scope scope(scratch);
      f(task, RowRange{task * each, std::min(rows, (task + 1) * each)}, scratch);
    });
  }
};

/// slope · u + start
struct Line {
  double slope = 0, start = 0;
  friend Line operator+(const Line& a, const Line& b) { return {a.slope + b.slope, a.start + b.start}; }
};

/// Output l in every segment. Units that turn on are summed from the left and those that turn off from the right, so that nothing
/// is subtracted.
template <class T>
const Line* segment_lines(const PsiTable<T>& table, const PsiParameters<T>& p, Index l, Workspace& scratch) {
  const Index S = table.segments(), J = p.w1.shape[1], g = p.w1.shape[0] == 1 ? 0 : l;
  Line *on = scratch.take<Line>(S), *off = scratch.take<Line>(S), always{0, double(p.b2(0, l))};
  std::fill_n(on, S, Line{});
  std::fill_n(off, S, Line{});
  for (Index j = 0; j < J; ++j) {
    const double w2 = double(p.w2(l, j)), w1 = double(p.w1(g, j)), b1 = double(p.b1(g, j));
    const Index rank = table.rank[g * J + j];
    const Line line{w2 * w1, w2 * b1};
    if (rank < 0)
      always = b1 > 0 ? always + line : always;
    else if (w1 > 0)
      on[rank + 1] = line;
    else
      off[rank] = line;
  }
  for (Index s = 1; s < S; ++s) on[s] = on[s] + on[s - 1];
  for (Index s = S - 1; s-- > 0;) off[s] = off[s] + off[s + 1];
  for (Index s = 0; s < S; ++s) on[s] = always + (on[s] + off[s]);
  return on;
}

}  // namespace

template <class T>
PsiTable<T> psi_table(const PsiParameters<T>& p, Workspace& memory) {
  const Index L = p.w2.shape[0], J = p.w2.shape[1], G = p.w1.shape[0];
  require(G == 1 || G == L, "psi", "expected w1 of 1 or ", L, " networks, got ", G);
  check_shape("psi", "w1", p.w1.shape, {G, J});
  check_shape("psi", "b1", p.b1.shape, {G, J});
  check_shape("psi", "b2", p.b2.shape, {1, L});
  PsiTable<T> table{.outputs = L, .units = G * J};
  const Index S = table.segments(), size = table.blocks() * 8, ends = round_up(table.blocks(), 8);
  T *corners = memory.take<T>(size), *block_ends = memory.take<T>(ends), *anchor = memory.take<T>(S);
  T *value = memory.take<T>(S * L), *slope = memory.take<T>(S * L);
  Index* rank = memory.take<Index>(table.units);
  std::fill_n(corners, size, std::numeric_limits<T>::infinity());
  std::fill_n(block_ends, ends, std::numeric_limits<T>::infinity());
  const Index count = sort_corners(p, corners, rank, memory);
  for (Index i = 0; i < table.blocks(); ++i) block_ends[i] = corners[i * 8 + 7];
  // No further from 0 than any number of the segment: what the line loses by rounding there is no more than a number's own terms.
  for (Index s = 0; s < S; ++s) {
    const bool left = s == 0 || count == 0;
    anchor[s] = std::min(std::max(T(0), left ? std::numeric_limits<T>::lowest() : corners[std::min(s, count) - 1]), corners[s]);
  }
  table.corners = corners, table.block_ends = block_ends, table.anchor = anchor;
  table.value = value, table.slope = slope, table.rank = rank;
  for (Index l = 0; l < L; ++l) {
    const Workspace::Scope scope(memory);
    const Line* lines = segment_lines(table, p, l, memory);
    for (Index s = 0; s < S; ++s) {
      value[s * L + l] = T(lines[s].slope * double(anchor[s]) + lines[s].start);
      slope[s * L + l] = T(lines[s].slope);
    }
  }
  return table;
}

template <class T>
void psi(const PsiTable<T>& table, PsiOptions options, View<const T, 4> u, View<T, 4> y, Context& context) {
  check("psi", table, u.shape, y.shape);
  const Index M = u.shape[3], L = table.outputs;
  const T floor = T(options.floor);
  Blocks(row_count(u), M).run(context, [&](Index, RowRange range, Workspace& scratch) {
    const Rows<const T> in = read_rows(u, range, scratch);
    const Rows<T> out = write_rows(y, range, scratch);
    const std::int32_t* segment = segments_of(table, in, range, M, context.isa(), scratch);
    for (Index r = range.begin; r < range.end; ++r) {
      const T* x = in.row(r);
      T* to = out.row(r);
      for (Index i = 0; i < M; ++i) {
        const Index s = *segment++;
        const T *value = table.value + s * L, *slope = table.slope + s * L, distance = x[i] - table.anchor[s];
        for (Index l = 0; l < L; ++l) to[i * L + l] = value[l] + slope[l] * distance;
      }
      // A NaN stays one.
      if (options.positive)
        for (Index i = 0; i < M * L; ++i) to[i] = (to[i] < T(0) ? T(0) : to[i]) + floor;
    }
    store_rows(out, y, range);
  });
}

namespace {

/// Σ dy and Σ dy·u of an output in a segment; all gradients follow from them.
struct Moments {
  double dy = 0, dy_u = 0;
};

/// A row of M numbers and their segments: du, if wanted, and its part of the moments [segments, outputs].
template <class T>
void add_moments(const PsiTable<T>& table, bool positive, Index M, const std::int32_t* segment, const T* u, const T* dy, T* du,
                 Moments* moments) {
  const Index L = table.outputs;
  for (Index i = 0; i < M; ++i) {
    const Index s = segment[i];
    const T *value = table.value + s * L, *slope = table.slope + s * L, distance = u[i] - table.anchor[s];
    T total = 0;
    for (Index l = 0; l < L; ++l) {
      const bool cut = positive && value[l] + slope[l] * distance <= T(0);
      const T d = cut ? T(0) : dy[i * L + l];
      total += d * slope[l];
      moments[s * L + l].dy += double(d);
      moments[s * L + l].dy_u += double(d) * double(u[i]);
    }
    if (du != nullptr) du[i] = total;
  }
}

/// Sums over the segments where unit i is on.
template <class T>
Moments active_moments(const PsiTable<T>& table, const PsiParameters<T>& p, Index i, Index l, const Moments* moments) {
  const Unit<T> unit(p, i);
  const Index rank = table.rank[i], S = table.segments();
  Index begin = 0, end = S;
  if (rank < 0)
    end = p.b1(unit.g, unit.j) > T(0) ? S : 0;
  else if (p.w1(unit.g, unit.j) > T(0))
    begin = rank + 1;
  else
    end = rank + 1;
  Moments sum;
  for (Index s = begin; s < end; ++s) {
    sum.dy += moments[s * table.outputs + l].dy;
    sum.dy_u += moments[s * table.outputs + l].dy_u;
  }
  return sum;
}

template <class T>
void set_parameters(const PsiTable<T>& table, const PsiParameters<T>& p, const Moments* moments, const PsiGradients<T>& grad,
                    Context& context) {
  const Index L = table.outputs;
  for (Index l = 0; l < L && grad.db2.present(); ++l) {
    double sum = 0;
    for (Index s = 0; s < table.segments(); ++s) sum += moments[s * L + l].dy;
    grad.db2(0, l) = T(sum);
  }
  context.parallel(ceil_div(table.units, 16), [&](Index task, Workspace&) {
    for (Index i = task * 16; i < std::min(table.units, (task + 1) * 16); ++i) {
      const Unit<T> unit(p, i);
      const bool shared = p.w1.shape[0] == 1;
      Moments sum;
      for (Index l = shared ? 0 : unit.g; l < (shared ? L : unit.g + 1); ++l) {
        const Moments m = active_moments(table, p, i, l, moments);
        const double w1 = double(p.w1(unit.g, unit.j)), b1 = double(p.b1(unit.g, unit.j)), w2 = double(p.w2(l, unit.j));
        if (grad.dw2.present()) grad.dw2(l, unit.j) = T(w1 * m.dy_u + b1 * m.dy);
        sum.dy += w2 * m.dy;
        sum.dy_u += w2 * m.dy_u;
      }
      if (grad.dw1.present()) grad.dw1(unit.g, unit.j) = T(sum.dy_u);
      if (grad.db1.present()) grad.db1(unit.g, unit.j) = T(sum.dy);
    }
  });
}

}  // namespace

template <class T>
void psi_vjp(const PsiTable<T>& table, const PsiParameters<T>& parameters, PsiOptions options, View<const T, 4> u,
             View<const T, 4> dy, const PsiGradients<T>& gradients, Context& context) {
  check("psi_vjp", table, u.shape, dy.shape);
  if (gradients.du.present()) check_shape("psi_vjp", "du", gradients.du.shape, u.shape);
  const Index M = u.shape[3], size = table.segments() * table.outputs;
  const Blocks blocks(row_count(u), M);
  const Workspace::Scope scope(context.workspace());
  // A block has its own sums, behind the total; they are added in order.
  Moments* moments = context.workspace().take<Moments>((blocks.count + 1) * size);
  std::fill_n(moments, size, Moments{});
  blocks.run(context, [&](Index block, RowRange range, Workspace& scratch) {
    Moments* own = moments + (block + 1) * size;
    std::fill_n(own, size, Moments{});
    const Rows<const T> in = read_rows(u, range, scratch), up = read_rows(dy, range, scratch);
    const Rows<T> du = write_rows(gradients.du, range, scratch);
    const std::int32_t* segment = segments_of(table, in, range, M, context.isa(), scratch);
    for (Index r = range.begin; r < range.end; ++r, segment += M)
      add_moments(table, options.positive, M, segment, in.row(r), up.row(r), du.data == nullptr ? nullptr : du.row(r), own);
    store_rows(du, gradients.du, range);
  });
  for (Index i = size; i < (blocks.count + 1) * size; ++i) {
    moments[i % size].dy += moments[i].dy;
    moments[i % size].dy_u += moments[i].dy_u;
  }
  set_parameters(table, parameters, moments, gradients, context);
}

template PsiTable<float> psi_table(const PsiParameters<float>&, Workspace&);
template PsiTable<double> psi_table(const PsiParameters<double>&, Workspace&);
template void psi(const PsiTable<float>&, PsiOptions, View<const float, 4>, View<float, 4>, Context&);
template void psi(const PsiTable<double>&, PsiOptions, View<const double, 4>, View<double, 4>, Context&);
template void psi_vjp(const PsiTable<float>&, const PsiParameters<float>&, PsiOptions, View<const float, 4>, View<const float, 4>,
                      const PsiGradients<float>&, Context&);
template void psi_vjp(const PsiTable<double>&, const PsiParameters<double>&, PsiOptions, View<const double, 4>,
                      View<const double, 4>, const PsiGradients<double>&, Context&);

}  // namespace isomer
