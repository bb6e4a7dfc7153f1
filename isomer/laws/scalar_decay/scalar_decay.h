#pragma once
// scalar_decay: linear attention with one forget gate and one input gate for each head and token.
//
//   S_t = e^{f_t} S_{t−1} + e^{i_t} k_t v_tᵀ     state [K,V]; f = log_decay, i = log_input (absent: 0)
//   n_t = e^{f_t} n_{t−1} + e^{i_t} k_t          norm [K], normalisers sum and max
//   o_t = scale · S_tᵀ q_t / d_t                 none: d = 1;  sum: d = scale·n·q + eps;
//                                                max (mLSTM): d = max(|scale·n·q|, 1) + eps
//
// `max` keeps S and n divided by e^m, m_t = max(f_t + m_{t−1}, i_t): large input gates do not overflow. m is a scale, not a
// variable. Without any initial state m starts from nothing; an absent initial max beside other states is 0. `subtract` (InLine;
// no gates): o_t = v̄ + scale/n · q_t Σ_j (k_j − k̄)(v_j − v̄)ᵀ over the n tokens seen. Its states are plain sums Σkvᵀ, Σk, Σv and a
// count; inside, sums are kept about the running means, so that large means do not cancel. Direction::global reads the state of
// the whole sequence at every token (none, sum, subtract; no decay, no initial states).
//
//   Context context;
//   scalar_decay<float>({.q = q, .k = k, .v = v, .log_decay = f}, {}, Form::automatic, {.o = o}, context);
//
// Shapes: q [B,T,Gq,K], k [B,T,Gk,K], v [B,T,Gv,V], gates [B,T,H] (a fixed decay of each head: a view with strides 0, 0, 1), o
// [B,T,H,V], states [n,H,…] for n sequences (B, or those of offsets). H is the largest of Gq, Gk, Gv and the others divide it.
// Views may have any strides. Outputs must not overlap inputs, but a final state may be the memory of the same initial state
// (streaming). T = 0 is fine. Cost, flops per token and head: chunk 4KV forward (`subtract` C·(K + V) more) and 2.5·C·(K + V) +
// 8KV backward (+ 2KV without a tape); step 5KV. Memory: a thread's scratch is O(C·(C + K + V) + KV); a tape, or the vjp without
// one, holds one state for each chunk; few heads of `subtract` or without causality hold them forward too. Form::parallel is one
// chunk of length T: O(T²); without causality it is the chunk form. Numerics: prefix sums of gates in double; log_decay = −inf
// forgets exactly and its gradient is 0. `sum` and `none` overflow when their input gates do. A NaN or inf in q, k, v or a gate
// spoils its head from the chunk that holds it on; other heads are unharmed. Not for use inside Context::parallel: it runs its
// own tasks.
#include <cstdint>
#include <optional>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"
#include "isomer/laws/tape.h"

namespace isomer {

struct ScalarDecayOptions {
  enum class Normaliser { none, sum, max, subtract };
  enum class Direction { causal, global };

  std::optional<double> scale = {};  // K^-1/2
  Normaliser normaliser = Normaliser::none;
  Direction direction = Direction::causal;
  double eps = 0;   // added to d; `max`: in the true scale
  Index chunk = 0;  // tokens of a chunk; 0: chosen
};

/// The states of n sequences: norm with sum, max and subtract; max with max; value_sum and count with subtract.
template <class T>
struct ScalarDecayStates {
  View<T, 4> state = {};      // [n,H,K,V]
  View<T, 3> norm = {};       // [n,H,K]
  View<T, 2> max = {};        // [n,H]
  View<T, 3> value_sum = {};  // [n,H,V]
  View<T, 1> count = {};      // [n]
};

template <class T>
struct ScalarDecayInputs {
  View<const T, 4> q, k, v;
  View<const T, 3> log_decay = {}, log_input = {};
  ScalarDecayStates<const T> initial = {};     // absent ones are zero
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1)
};

/// What the forward pass leaves for the backward pass.
template <class T>
using ScalarDecayTape = ChunkTape<T>;

template <class T>
struct ScalarDecayOutputs {
  View<T, 4> o;
  ScalarDecayStates<T> final_states = {};  // those present are written
  ScalarDecayTape<T>* tape = nullptr;      // filled if given
};

template <class T>
void scalar_decay(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form, const ScalarDecayOutputs<T>& out,
                  Context& context);

/// What comes back from the loss; absent ones are zero. `max` and `count` carry no gradient.
template <class T>
struct ScalarDecayCotangents {
  View<const T, 4> o = {};
  ScalarDecayStates<const T> final_states = {};
  const ScalarDecayTape<T>* tape = nullptr;  // of a forward call with the same inputs; without it states are computed again
};

/// Gradients to fill; absent ones are left out.
template <class T>
struct ScalarDecayGradients {
  View<T, 4> q = {}, k = {}, v = {};
  View<T, 3> log_decay = {}, log_input = {};
  ScalarDecayStates<T> initial = {};
};

template <class T>
void scalar_decay_vjp(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form,
                      const ScalarDecayCotangents<T>& given, const ScalarDecayGradients<T>& grad, Context& context);

}  // namespace isomer
