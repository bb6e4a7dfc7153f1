#include "isomer/autograd/views.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer::ops {

template <class T>
Var<T> heads(Var<T> x, Index heads) {
  const View<T, 4>& v = x.value;
  if (heads == v.shape[2]) return x;
  const Index width = v.shape[2] * v.shape[3];
  require(heads > 0 && width % heads == 0, "heads", "expected a number of heads that divides ", width, ", got ", heads);
  require(v.shape[2] == 1 || v.stride[2] == v.shape[3] * v.stride[3], "heads", "expected heads side by side, got ", v.shape[3],
          " channels every ", v.stride[2]);
  const Index size = width / heads;
  return Tape<T>::alias(
      x, {v.data, {v.shape[0], v.shape[1], heads, size}, {v.stride[0], v.stride[1], size * v.stride[3], v.stride[3]}});
}

template <class T>
void split(Tape<T>& tape, Var<T> x, std::span<const Index> sizes, std::span<Var<T>> pieces) {
  Index begin = 0;
  for (std::size_t i = 0; i < sizes.size(); begin += sizes[i++]) pieces[i] = tape.piece(x, slice(x.value, 3, begin, sizes[i]));
  ISOMER_ASSERT(begin == x.dim(3), "the pieces make up the whole");
  // Consumers write each piece's gradient in place; what nobody used is zero.
  Var<T>* kept = tape.template keep<Var<T>>(Index(pieces.size()));
  std::copy(pieces.begin(), pieces.end(), kept);
  tape.record(std::span<const Var<T>>(pieces), [x, kept, count = pieces.size()](Tape<T>& back) {
    for (std::size_t i = 0; i < count; ++i) (void)back.arrived(kept[i]);
    back.covered(x);
  });
}

template <class T>
Var<T> slice(Var<T> x, Index begin, Index size) {
  require(begin >= 0 && size >= 0 && begin + size <= x.dim(3), "slice", "expected a part of ", x.dim(3), " channels, got ", begin,
          " … ", begin + size);
  return Tape<T>::part(x, slice(x.value, 3, begin, size));
}

template <class T>
Var<T> detach(Tape<T>& tape, Var<T> x) {
  return tape.input(x.value);
}

template Var<float> slice(Var<float>, Index, Index);
template Var<double> slice(Var<double>, Index, Index);
template Var<float> detach(Tape<float>&, Var<float>);
template Var<double> detach(Tape<double>&, Var<double>);
template Var<float> heads(Var<float>, Index);
template Var<double> heads(Var<double>, Index);
template void split(Tape<float>&, Var<float>, std::span<const Index>, std::span<Var<float>>);
template void split(Tape<double>&, Var<double>, std::span<const Index>, std::span<Var<double>>);

}  // namespace isomer::ops
