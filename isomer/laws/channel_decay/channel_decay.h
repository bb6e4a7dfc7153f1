#pragma once
// channel_decay: linear attention with a forget gate for each key channel (GLA, HGRN2, MetaLA, RWKV-6).
//
//   S_t = Diag(e^{f_t}) S_{t−1} + k_t v_tᵀ                          state [K,V]; f = log_decay
//   Read::after    o_t = scale · S_tᵀ q_t
//   Read::before   o_t = scale · (S_{t−1}ᵀ q_t + (q_t·(bonus∘k_t)) v_t)    RWKV-6; an absent bonus is 0
//
//   Context context;
//   channel_decay<float>({.q = q, .k = k, .v = v, .log_decay = f}, {}, Form::automatic, {.o = o}, context);
//
// For one gate a head use scalar_decay, which is faster.
// Shapes: q [B,T,Gq,K], k [B,T,Gk,K], v [B,T,Gv,V], log_decay [B,T,H,K], bonus [H,K], o [B,T,H,V], states [n,H,K,V] for n
// sequences (B, or those of offsets). H is the largest of Gq, Gk, Gv and the others divide it. Views may have any strides.
// Outputs must not overlap inputs, but the final state may be the memory of the initial state (streaming). T = 0 is fine. Cost,
// flops per token and head: chunk 4KV forward and 2.5·C·(K + V) + 8KV backward (+ 2KV without a tape), and about 60K for the
// gates and the pairs of neighbours; step 5KV. Memory: a thread's scratch is O(C·(C + K + V) + KV); a tape, or the vjp without
// one, holds one state for each chunk. Form::parallel is one chunk of length T: O(T²). Numerics: decays are multiplied, never
// subtracted as logarithms and never divided by, so that no exponent overflows and every weight has the relative error of its own
// few factors, however strong the decays before it. A decay that is 0 in the type (log_decay = −inf, −1e4) forgets exactly and
// its gradient is 0. log_decay may be positive as long as the product of the decays of a chunk (at most 96 tokens; `parallel`:
// the sequence) is a finite number of the type. A NaN or inf in q, k, v or log_decay (but −inf) spoils its head from the chunk
// that holds it on; other heads are unharmed. Not for use inside Context::parallel: it runs its own tasks.
#include <cstdint>
#include <optional>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"
#include "isomer/laws/tape.h"

namespace isomer {

struct ChannelDecayOptions {
  enum class Read { after, before };

  std::optional<double> scale = {};  // K^-1/2
  Read read = Read::after;
  Index chunk = 0;  // tokens of a chunk; 0: chosen
};

template <class T>
struct ChannelDecayInputs {
  View<const T, 4> q, k, v, log_decay;
  View<const T, 2> bonus = {};                 // only with Read::before
  View<const T, 4> initial_state = {};         // absent: zero
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1)
};

/// What the forward pass leaves for the backward pass.
template <class T>
using ChannelDecayTape = ChunkTape<T>;

template <class T>
struct ChannelDecayOutputs {
  View<T, 4> o;
  View<T, 4> final_state = {};          // written if present
  ChannelDecayTape<T>* tape = nullptr;  // filled if given
};

template <class T>
void channel_decay(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form,
                   const ChannelDecayOutputs<T>& out, Context& context);

/// What comes back from the loss; absent ones are zero.
template <class T>
struct ChannelDecayCotangents {
  View<const T, 4> o = {}, final_state = {};
  const ChannelDecayTape<T>* tape = nullptr;  // of a forward call with the same inputs; without it states are computed again
};

/// Gradients to fill; absent ones are left out.
template <class T>
struct ChannelDecayGradients {
  View<T, 4> q = {}, k = {}, v = {}, log_decay = {};
  View<T, 2> bonus = {};
  View<T, 4> initial_state = {};
};

template <class T>
void channel_decay_vjp(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form,
                       const ChannelDecayCotangents<T>& given, const ChannelDecayGradients<T>& grad, Context& context);

}  // namespace isomer
