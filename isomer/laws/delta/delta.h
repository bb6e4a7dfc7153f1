#pragma once
// delta: an associative memory that overwrites. What the state holds under a key is read first, and the difference is written.
//
//   D_t = e^{g_t} ∘ S_{t−1}                     state [K,V]; g = log_decay, of the head or of every key (absent: 0)
//   S_t = D_t − β_t k_t (k_tᵀ D_t − v_tᵀ)       β from 0 to 2
//   o_t = scale · S_tᵀ q_t
//
// DeltaNet (no decay), Gated DeltaNet (of the head), KDA (of every key). The low-rank rule (RWKV-7) has a and b in place of β:
//
//   S_t = e^{g_t} ∘ S_{t−1} + b_t (a_tᵀ S_{t−1}) + k_t v_tᵀ        g of every key; a reads the state before its decay
//
// The recurrence is stable while no |1 − β|k|²| exceeds 1: normalise keys, here with Options::l2norm, which makes
// x / √(Σx² + 1e-6) of q and k first, or before.
//
//   Context context;
//   delta<float>({.q = q, .k = k, .v = v, .beta = beta, .log_decay = g}, {.l2norm = true}, Form::automatic, {.o = o}, context);
//
// Shapes: q [B,T,Gq,K], k [B,T,Gk,K], v [B,T,Gv,V], beta and log_decay [B,T,H], key_log_decay, a and b [B,T,H,K], o [B,T,H,V],
// states [n,H,K,V] for n sequences (B, or those of offsets). H is the largest of Gq, Gk, Gv and the others divide it. Views may
// have any strides. Outputs must not overlap inputs, but the final state may be the memory of the initial state (streaming).
// T = 0 is fine. Cost, flops per token and head: chunk 6KV forward and 6CK + 4CV + 12KV
// backward (+ 4KV without a tape), low rank 8KV and 12CK + 8CV + 16KV; step 7KV. Memory: a thread's scratch is
// O(C(C + K + V) + KV); a tape, or the vjp without one, holds for each chunk a state and what was written. Numerics: log_decay
// may be anything from −inf, which forgets exactly and has the gradient 0, to slightly above 0. A NaN or inf in an input spoils
// its head from the chunk that holds it on; other heads are unharmed. Not for use inside Context::parallel: it runs its own
// tasks.
#include <cstdint>
#include <optional>
#include <span>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"
#include "isomer/laws/tape.h"

namespace isomer {

struct DeltaOptions {
  std::optional<double> scale = {};  // K^-1/2
  bool l2norm = false;               // of q and k
  Index chunk = 0;                   // tokens of a chunk; 0: chosen
};

/// Either beta, with one decay or none; or key_log_decay, a and b.
template <class T>
struct DeltaInputs {
  View<const T, 4> q, k, v;
  View<const T, 3> beta = {}, log_decay = {};
  View<const T, 4> key_log_decay = {}, a = {}, b = {};
  View<const T, 4> initial_state = {};         // absent: zero
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1)
};

/// What the forward pass leaves for the backward pass.
template <class T>
using DeltaTape = ChunkTape<T>;

template <class T>
struct DeltaOutputs {
  View<T, 4> o;
  View<T, 4> final_state = {};   // written if present
  DeltaTape<T>* tape = nullptr;  // filled if given
};

template <class T>
void delta(const DeltaInputs<T>& in, const DeltaOptions& options, Form form, const DeltaOutputs<T>& out, Context& context);

/// What comes back from the loss; absent ones are zero.
template <class T>
struct DeltaCotangents {
  View<const T, 4> o = {};
  View<const T, 4> final_state = {};
  const DeltaTape<T>* tape = nullptr;  // of a forward call with the same inputs; without it states are computed again
};

/// Gradients to fill; absent ones are left out.
template <class T>
struct DeltaGradients {
  View<T, 4> q = {}, k = {}, v = {};
  View<T, 3> beta = {}, log_decay = {};
  View<T, 4> key_log_decay = {}, a = {}, b = {};
  View<T, 4> initial_state = {};
};

template <class T>
void delta_vjp(const DeltaInputs<T>& in, const DeltaOptions& options, Form form, const DeltaCotangents<T>& given,
               const DeltaGradients<T>& grad, Context& context);

}  // namespace isomer
