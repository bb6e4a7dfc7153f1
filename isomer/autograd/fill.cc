#include "isomer/autograd/fill.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {
struct Stretch {
  Index begin, end;
};
/// What element i of an axis of `out` elements sums of one of `in`.
Stretch stretch(Index i, Index out, Index in) { return out == 1 ? Stretch{0, in} : Stretch{i, i + 1}; }

constexpr Index kColumns = 64;

/// Columns from `begin` on of one row of `into`.
template <class T>
void sum_row(View<const T, 4> x, const GradientTarget<T>& into, Index row, Index begin) {
  const Shape4& out = into.view.shape;
  const Index i = row / (out[1] * out[2]), j = row / out[2] % out[1], k = row % out[2];
  const Stretch bs = stretch(i, out[0], x.shape[0]), ts = stretch(j, out[1], x.shape[1]), hs = stretch(k, out[2], x.shape[2]);
  const Index n = std::min(kColumns, out[3] - begin);
  // All columns of x go into the only one, or each into its own.
  const Index columns = out[3] == 1 ? x.shape[3] : n, step = out[3] == 1 ? 0 : 1;
  std::array<double, kColumns> sum{};
  for (Index b = bs.begin; b < bs.end; ++b)
    for (Index t = ts.begin; t < ts.end; ++t)
      for (Index h = hs.begin; h < hs.end; ++h) {
        const T* from = x.at(b, t, h, begin);
        for (Index d = 0; d < columns; ++d) sum[std::size_t(d * step)] += double(from[d * x.stride[3]]);
      }
  for (Index d = 0; d < n; ++d) {
    T& target = into.view(i, j, k, begin + d);
    target = T(sum[std::size_t(d)] + (into.mode == Accumulate::add ? double(target) : 0.0));
  }
}
}  // namespace

template <class T>
void sum_into(View<const T, 4> x, const GradientTarget<T>& into, Context& context) {
  if (!into.present()) return;
  const Shape4& out = into.view.shape;
  const Index blocks = ceil_div(out[3], kColumns), rows = out[0] * out[1] * out[2];
  // Few rows are sums over many tokens: each is a task. Many are short sums.
  const Index each = rows > kRowBlock ? kRowBlock : 1;
  context.parallel(ceil_div(rows, each) * blocks, [&](Index task, Workspace&) {
    const Index first = task / blocks * each;
    for (Index row = first; row < std::min(first + each, rows); ++row) sum_row(x, into, row, task % blocks * kColumns);
  });
}

template <class T>
View<T, 4> Filling<T>::operator()(Var<T> input, const Shape4& shape) {
  const GradientTarget<T> into = tape_.target(input);
  if (!into.present()) return {};
  if (into.mode == Accumulate::set && input.shape() == shape) return into.view;
  ISOMER_ASSERT(count_ < kParts, "a kernel sets a few gradients at once");
  Index size = 1;
  for (const Index n : shape) size *= n;
  T* memory = tape_.context().workspace().template take<T>(size);
  const View<T, 4> part = contiguous(memory, {shape[0], shape[1], shape[2], shape[3]});
  parts_[count_++] = {part, into};
  return part;
}

template <class T>
void Filling<T>::finish() {
  for (std::size_t i = 0; i < count_; ++i) {
    const auto& [part, into] = parts_[i];
    if (part.shape == into.view.shape)
      internal::add_to(part, into.view, tape_.context());
    else
      sum_into(part, into, tape_.context());
  }
  count_ = 0;
}

template void sum_into(View<const float, 4>, const GradientTarget<float>&, Context&);
template void sum_into(View<const double, 4>, const GradientTarget<double>&, Context&);
template class Filling<float>;
template class Filling<double>;

}  // namespace isomer
