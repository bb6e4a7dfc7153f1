#pragma once
// Rotation of pairs of channels (n, n + D/2) by angles: rotary position embedding, fixed or depending on the input.
//
//   rotary<float>(q, {.base = 10000, .offset = position}, y, context);      // θ = (offset + t) · base^(−2n/D)
//   rotary<float>(q, angle, y, context);                                    // θ = angle [B, T, H or 1, D/2]
//
//   y[n] = x[n] cos θ − x[n + D/2] sin θ,   y[n + D/2] = x[n] sin θ + x[n + D/2] cos θ
//
// x, y [B, T, H, D] with D even and any strides; y may be x. Angles, sines and cosines are computed in double; angles given
// beyond 2^20 give NaN. Cost: 1 read and 1 write of x, and D/2 sines and cosines a token (a token and head for [B, T, H, D/2]).
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"

namespace isomer {

/// Slower angles for longer sequences than a model was trained on. Frequencies are divided by `factor`; with a length, that of
/// the training (Llama 3.1), only those of waves longer than length / low are, those of waves shorter than length / high stay,
/// and those in between are mixed.
struct RotaryScaling {
  double factor = 1, low = 1, high = 4, length = 0;
  [[nodiscard]] bool operator==(const RotaryScaling&) const = default;
};

struct RotaryPositions {
  double base = 10000;
  RotaryScaling scaling = {};
  std::int64_t offset = 0;  // the position of the first token
};

/// The angle of a step for each pair of D channels.
void rotary_frequencies(const RotaryPositions& positions, Index half, double* frequency);

template <class T>
void rotary(View<const T, 4> x, RotaryPositions positions, View<T, 4> y, Context& context);
template <class T>
void rotary(View<const T, 4> x, View<const T, 4> angle, View<T, 4> y, Context& context);

/// dx from dy: the rotation by −θ. dx may be dy.
template <class T>
void rotary_vjp(View<const T, 4> dy, RotaryPositions positions, View<T, 4> dx, Context& context);

/// What rotary_vjp sets; absent views are not computed.
template <class T>
struct RotaryGradients {
  View<T, 4> dx = {}, dangle = {};
};

/// And dθ = dy[n + D/2] y[n] − dy[n] y[n + D/2], summed over heads when angle has one; y is recomputed from x.
/// dx may be dy.
template <class T>
void rotary_vjp(View<const T, 4> x, View<const T, 4> dy, View<const T, 4> angle, RotaryGradients<T> gradients, Context& context);

}  // namespace isomer
