#include "isomer/kernels/dropout/dropout.h"

#include <algorithm>
#include <cmath>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/dropout/dropout_kernels.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {
/// The words of elements begin … end − 1, where the first of them stands.
template <Isa I>
const std::uint32_t* words_of(const DropoutMask& mask, Index begin, Index end, std::uint32_t* memory) {
  constexpr Index kWords = 4 * kPhiloxLanes;
  const Index first = begin / 4 * 4;
  for (Index i = first; i < end; i += kWords) PhiloxKernels<I>::words(mask, std::uint64_t(i / 4), memory + (i - first));
  return memory + (begin - first);
}
}  // namespace

template <class T>
void dropout(const DropoutOptions& options, View<const T, 4> x, View<T, 4> y, Accumulate accumulate, Context& context) {
  require(options.rate >= 0 && options.rate < 1, "dropout", "expected a rate from 0 to below 1, got ", options.rate);
  check_shape("dropout", "y of the shape of x,", y.shape, x.shape);
  const DropoutMask mask{options.seed, options.stream, std::uint32_t(std::min(std::round(options.rate * 0x1p32), 0x1p32 - 1)),
                         1 / (1 - options.rate)};
  const Index D = x.shape[3];
  const Index first = options.first;
  const bool add = accumulate == Accumulate::add;
  const auto run = [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace& scratch) {
    std::uint32_t* memory = scratch.take<std::uint32_t>(D + 4 + 4 * kPhiloxLanes);
    for (Index r = range.begin; r < range.end; ++r)
      DropoutKernels<T, I>::apply(mask, D, words_of<I>(mask, first + r * D, first + (r + 1) * D, memory), in[0].row(r), add,
                                  out.row(r));
  };
  each_row_block<T>({x}, {y, accumulate}, context, run);
}

template void dropout(const DropoutOptions&, View<const float, 4>, View<float, 4>, Accumulate, Context&);
template void dropout(const DropoutOptions&, View<const double, 4>, View<double, 4>, Accumulate, Context&);

}  // namespace isomer
