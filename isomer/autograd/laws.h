#pragma once
// The laws as typed ops: thin wrappers of law() (law.h), with the options of the laws' headers.
//
//   const Var<float> o = ops::channel_decay<float>(tape, {.q = q, .k = k, .v = v, .log_decay = f});
//
// q, k, v [B,T,G,D] with grouped heads as in the laws. A gate of each head is [B,T,H,1] or [B,T,1,H], and what scans work on,
// [B,T,N] there, is [B,T,1,N]. Any input may be the same for all sequences, tokens or heads (size 1 in that axis): its gradient
// is the sum. States hold the initial state and are overwritten with the final one; gradients take them for constants.
#include "isomer/autograd/law.h"
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scan/scan_law.h"

namespace isomer::ops {

template <class T>
struct AttentionVars {
  Var<T> q, k, v, log_forget = {}, gate = {};
  Var<T> bias = {};  // [1,1,H,N]
};
/// → [B,T,H,V]. k, v and log_forget may be longer than q: keys and values kept from before, the queries are the last T tokens.
template <class T>
[[nodiscard]] Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options = {},
                               Form form = Form::automatic);
/// T tokens that follow those of the state; the state takes them in. Carries no gradient.
template <class T>
[[nodiscard]] Var<T> attention(Tape<T>& tape, const AttentionVars<T>& in, const AttentionOptions& options,
                               AttentionStream<T>& state);

template <class T>
struct ScalarDecayVars {
  Var<T> q, k, v, log_decay = {}, log_input = {};
};
/// → [B,T,H,V]
template <class T>
[[nodiscard]] Var<T> scalar_decay(Tape<T>& tape, const ScalarDecayVars<T>& in, const ScalarDecayOptions& options = {},
                                  const ScalarDecayStates<T>& states = {}, Form form = Form::automatic);

template <class T>
struct ChannelDecayVars {
  Var<T> q, k, v, log_decay;
  Var<T> bonus = {};  // [1,1,H,K]
};
/// → [B,T,H,V]; state [B,H,K,V]
template <class T>
[[nodiscard]] Var<T> channel_decay(Tape<T>& tape, const ChannelDecayVars<T>& in, const ChannelDecayOptions& options = {},
                                   View<T, 4> state = {}, Form form = Form::automatic);

template <class T>
struct DeltaVars {
  Var<T> q, k, v;
  Var<T> beta = {}, log_decay = {};  // of each head; log_decay also of each key, [B,T,H,K]
  Var<T> a = {}, b = {};             // [B,T,H,K]
};
/// → [B,T,H,V]; state [B,H,K,V]
template <class T>
[[nodiscard]] Var<T> delta(Tape<T>& tape, const DeltaVars<T>& in, const DeltaOptions& options = {}, View<T, 4> state = {},
                           Form form = Form::automatic);

template <class T>
struct ScanVars {
  Var<T> log_decay, x, angle = {}, x_imag = {};
};
/// → h [B,T,1,N], or h and h_imag side by side [B,T,1,2N] when angle, x_imag or an imaginary state is there.
template <class T>
[[nodiscard]] Var<T> scan(Tape<T>& tape, const ScanVars<T>& in, const ScanOptions& options = {}, const ScanStates<T>& states = {},
                          Form form = Form::automatic);

template <class T>
struct ScanS6Vars {
  Var<T> x, step;  // [B,T,1,C]
  Var<T> a;        // [1,1,C,N]
  Var<T> b, c;     // [B,T,1,N]
  Var<T> d = {};   // [1,1,1,C]
};
/// → [B,T,1,C]; state [B,C,N]
template <class T>
[[nodiscard]] Var<T> scan_s6(Tape<T>& tape, const ScanS6Vars<T>& in, const ScanOptions& options = {}, View<T, 3> state = {},
                             Form form = Form::automatic);

}  // namespace isomer::ops
