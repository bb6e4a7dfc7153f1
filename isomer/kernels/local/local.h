#pragma once
// Sums over neighbouring tokens, channel by channel, with weights that may come from the input (InLine's local residual).
//
//   local_sum<float>({.v = v, .weight = r, .state = before}, {.width = 3}, {.y = y, .state = after}, context);
//
//   y_t = Σ_j r_t[j] ∘ v_{n(t, j)}      n(t, j) = t − j for j < width; or the 3 × 3 neighbours of t in an image, row by row
//
// v, y [B, T, H, D]; weight [B, T, H, taps·D] with the D weights of a tap side by side, or [B, 1, H, taps·D] for all tokens of a
// sequence. Any strides, a dense last axis fast. Tokens before the first come from the state [B, width − 1, H·D], oldest first,
// zeros when absent; images have T = rows · columns tokens, zeros around them, and no state. Nothing written may overlap anything
// read, but for the two states. Cost: 2·B·T·H·D·taps flops forward, twice that backward.
#include "isomer/base/context.h"
#include "isomer/base/view.h"

namespace isomer {

struct Neighbourhood {
  Index width = 3;
  Index rows = 0, columns = 0;  // of an image, if not 0

  [[nodiscard]] bool image() const { return rows != 0 || columns != 0; }
  [[nodiscard]] Index taps() const { return image() ? 9 : width; }
};

template <class T>
struct LocalInputs {
  View<const T, 4> v, weight;
  View<const T, 3> state = {};
};

template <class T>
struct LocalOutputs {
  View<T, 4> y;
  View<T, 3> state = {};
};

template <class T>
void local_sum(const LocalInputs<T>& in, const Neighbourhood& near, const LocalOutputs<T>& out, Context& context);

/// Gradients at y and at the final state; the second may be absent.
template <class T>
struct LocalUpstream {
  View<const T, 4> dy;
  View<const T, 3> dstate = {};
};

/// What local_sum_vjp sets; absent views are not computed. dstate, of the initial state, may not be the upstream one.
template <class T>
struct LocalGradients {
  View<T, 4> dv = {}, dweight = {};
  View<T, 3> dstate = {};
};

template <class T>
void local_sum_vjp(const LocalInputs<T>& in, const Neighbourhood& near, const LocalUpstream<T>& up,
                   const LocalGradients<T>& gradients, Context& context);

}  // namespace isomer
