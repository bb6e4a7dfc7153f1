#pragma once
// scan: recurrences without heads, one number of state for every channel (LRU, S4D, S5, RG-LRU, qLSTM), or N for every channel
// (S6, Mamba).
//
//   scan      h_t = e^{log_decay_t + i·angle_t} h_{t−1} + x_t                    [N] numbers, real or complex
//   scan_s6   h_t = e^{step_t a} ∘ h_{t−1} + (step_t ∘ x_t) b_tᵀ                 [C,N] numbers; step_t, x_t [C], b_t, c_t [N]
//             o_t = h_t c_t + d ∘ x_t
//
// scan is complex when angle, x_imag or an initial imag is there; absent parts are 0. S6: `step` is what softplus gave (≥ 0), `a`
// is the negative matrix itself; either may have the other sign, as long as e^{step·a} does not overflow.
//
//   Context context;
//   scan<float>({.log_decay = f, .x = x}, {}, Form::automatic, {.h = h}, context);
//   scan_s6<float>({.x = x, .step = step, .a = a, .b = b, .c = c}, {}, Form::automatic, {.o = o}, context);
//
// Views may have any strides (a decay that does not change in time has stride 0 there). Outputs must not overlap inputs, but a
// final state may be the memory of the same initial state (streaming). T = 0 is fine. States are [n,…] for n sequences: B, or
// those of offsets.
// Cost, flops per token and number of state, counting an exponential as 10 and a sine with its cosine as 20: scan 12 forward and
// 15 backward, complex 40 and 54; S6 15 forward and 28 backward, step 15. Nothing of size [T,C,N] is ever stored: a tape, or the
// vjp without one, holds the state at each edge of a chunk, and states inside a chunk are computed again from it. Channels run
// side by side: blocks of kBlock of them are the tasks.
// Numerics: log_decay = −inf forgets exactly and its gradient is 0. Angles are reduced exactly whatever their size; beyond 8192
// (float) or 2^20 (double) slowly. A NaN or inf spoils its channel from its token on and, in backward, what is summed over
// channels or tokens; other channels are unharmed. Not for use inside Context::parallel: it runs its own tasks.
#include <cstdint>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"
#include "isomer/laws/tape.h"

namespace isomer {

struct ScanOptions {
  Index chunk = 0;  // tokens of a chunk; 0: chosen
};

/// What the forward pass leaves for the backward pass.
template <class T>
using ScanTape = ChunkTape<T>;

/// The states of n sequences.
template <class T>
struct ScanStates {
  View<T, 2> state = {}, imag = {};  // [n,N]
};

template <class T>
struct ScanInputs {
  View<const T, 3> log_decay, x;             // [B,T,N]
  View<const T, 3> angle = {}, x_imag = {};  // [B,T,N]
  ScanStates<const T> initial = {};
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1)

  [[nodiscard]] bool complex() const { return angle.present() || x_imag.present() || initial.imag.present(); }
};

template <class T>
struct ScanOutputs {
  View<T, 3> h, h_imag = {};        // [B,T,N]; h_imag when complex
  ScanStates<T> final_states = {};  // those present are written
  ScanTape<T>* tape = nullptr;      // filled if given
};

template <class T>
void scan(const ScanInputs<T>& in, const ScanOptions& options, Form form, const ScanOutputs<T>& out, Context& context);

/// What comes back from the loss; absent ones are zero. The gradient of a complex number is ∂L/∂re and ∂L/∂im.
template <class T>
struct ScanCotangents {
  View<const T, 3> h = {}, h_imag = {};
  ScanStates<const T> final_states = {};
  const ScanTape<T>* tape = nullptr;  // of a forward call with the same inputs; without it states are computed again
};

/// Gradients to fill; absent ones are left out.
template <class T>
struct ScanGradients {
  View<T, 3> log_decay = {}, x = {}, angle = {}, x_imag = {};
  ScanStates<T> initial = {};
};

template <class T>
void scan_vjp(const ScanInputs<T>& in, const ScanOptions& options, Form form, const ScanCotangents<T>& given,
              const ScanGradients<T>& grad, Context& context);

template <class T>
struct ScanS6Inputs {
  View<const T, 3> x, step;             // [B,T,C]
  View<const T, 2> a;                   // [C,N]
  View<const T, 3> b, c;                // [B,T,N]
  View<const T, 1> d = {};              // [C]
  View<const T, 3> initial_state = {};  // [n,C,N]
  std::span<const std::int64_t> offsets = {};
};

template <class T>
struct ScanS6Outputs {
  View<T, 3> o;                 // [B,T,C]
  View<T, 3> final_state = {};  // [n,C,N]
  ScanTape<T>* tape = nullptr;
};

template <class T>
void scan_s6(const ScanS6Inputs<T>& in, const ScanOptions& options, Form form, const ScanS6Outputs<T>& out, Context& context);

template <class T>
struct ScanS6Cotangents {
  View<const T, 3> o = {}, final_state = {};
  const ScanTape<T>* tape = nullptr;
};

template <class T>
struct ScanS6Gradients {
  View<T, 3> x = {}, step = {};
  View<T, 2> a = {};
  View<T, 3> b = {}, c = {};
  View<T, 1> d = {};
  View<T, 3> initial_state = {};
};

template <class T>
void scan_s6_vjp(const ScanS6Inputs<T>& in, const ScanOptions& options, Form form, const ScanS6Cotangents<T>& given,
                 const ScanS6Gradients<T>& grad, Context& context);

}  // namespace isomer
