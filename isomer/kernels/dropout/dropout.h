#pragma once
// Dropout: every element is zero with the probability `rate`, else divided by 1 − rate.
//
//   dropout<float>({.rate = 0.1, .seed = seed, .stream = step}, x, y, Accumulate::set, context);
//
// Whether an element is kept depends on (seed, stream, its number) alone: the i-th in the order of [B, T, H, D] is kept if the
// (first + i)-th 32 bits of Rng(seed, stream) are at least rate · 2^32. Nothing is stored: the gradient is the same call on dy.
// Any strides, a dense last axis fast; y may be x. Cost: a quarter of a Philox block an element.
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

struct DropoutOptions {
  double rate = 0.1;
  std::uint64_t seed = 0, stream = 0;
  Index first = 0;  // of a larger array of which x is a part: the number of its first element
};

template <class T>
void dropout(const DropoutOptions& options, View<const T, 4> x, View<T, 4> y, Accumulate accumulate, Context& context);

}  // namespace isomer
