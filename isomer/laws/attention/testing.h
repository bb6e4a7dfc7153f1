#pragma once
// Arrays for the tests of this folder.
#include <cmath>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/base/view.h"

namespace isomer::attention_testing {

template <class T>
struct Data {
  std::vector<T> values;
  View<T, 4> view;
  Data(Index B, Index rows, Index H, Index D, std::uint64_t seed) : values(std::size_t(B * rows * H * D)) {
    Rng rng(seed);
    for (T& x : values) x = T(rng.normal());
    view = contiguous(values.data(), {B, rows, H, D});
  }
};

template <class T>
double distance(View<const T, 4> a, View<const T, 4> b) {
  double worst = 0;
  for (Index i = 0; i < a.shape[0]; ++i)
    for (Index t = 0; t < a.shape[1]; ++t)
      for (Index h = 0; h < a.shape[2]; ++h)
        for (Index d = 0; d < a.shape[3]; ++d) {
          const double e = std::abs(double(a(i, t, h, d)) - double(b(i, t, h, d)));
          worst = e <= worst ? worst : e;  // a NaN sticks
        }
  return worst;
}

}  // namespace isomer::attention_testing
