#pragma once
// The Dynamical Systems view (Sieber et al. 2024): every law, on given inputs, as one linear recurrence
//
//   h_t = Λ_t h_{t−1} + B_t u_t,    y_t = C_t h_t + D_t u_t
//
// u is what is written (the values v of a head; the inputs x of a scan) and y the law's output. Everything else that enters the
// law (queries, keys, gates, normalisers) is in the matrices. So any mixer has eigenvalues, a state dimension, a memory horizon
// and an effective attention matrix Φ, y = Φ u. Plain double loops for short sequences and tests; not a way to compute.
//
//   const Dsf system = realise(find_law("delta"), inputs, {{"l2norm", "true"}}, {.sequence = 0, .head = 1});
//   const Signal y = run(system, written(find_law("delta"), inputs, {.sequence = 0, .head = 1}));
//   const DsfMap map = materialise(system);  // the effective attention matrix
//
// Structure is kept: the state is `features` numbers for each of `channels` channels, no matrix mixes channels, and Λ_t is
// diagonal plus at most rank one. Numbers are complex; those of all laws but complex scans are real. dsf.md has the matrices.
#include <vector>

#include "isomer/laws/dsf.h"

namespace isomer {

/// [T, channels] numbers.
struct Signal {
  Index T = 0, channels = 0;
  std::vector<Complex> values = std::vector<Complex>(std::size_t(T * channels));
  [[nodiscard]] Complex& operator()(Index t, Index c) { return values[std::size_t(t * channels + c)]; }
  [[nodiscard]] Complex operator()(Index t, Index c) const { return values[std::size_t(t * channels + c)]; }
};

/// Φ of each group of channels: y_t = Σ_s Φ(t, s) u_s (+ what is left of the initial state). Lower triangular.
struct DsfMap {
  Index T = 0, groups = 1;
  std::vector<Complex> values = std::vector<Complex>(std::size_t(T * T * groups));
  [[nodiscard]] Complex& operator()(Index group, Index t, Index s) { return values[std::size_t((group * T + t) * T + s)]; }
  [[nodiscard]] Complex operator()(Index group, Index t, Index s) const { return values[std::size_t((group * T + t) * T + s)]; }
};

/// Throws Error when inputs are not double, the law is not causal with these settings, or there is no such sequence or head.
/// Logits of attention must stay within ±600: weights are not scaled by their largest.
[[nodiscard]] Dsf realise(const Law& law, const Tensors& inputs, const Settings& settings, DsfPlace place,
                          const DsfOptions& options = {});
/// The law's u.
[[nodiscard]] Signal written(const Law& law, const Tensors& inputs, DsfPlace place);
/// The law's output y from the tensors that apply() returned.
[[nodiscard]] Signal read(const Law& law, const Tensors& inputs, const Tensors& outputs, DsfPlace place);

/// The recurrence, token by token, from the initial state.
[[nodiscard]] Signal run(const Dsf& system, const Signal& u);
[[nodiscard]] DsfMap materialise(const Dsf& system);
/// Φ u, plus what is left of the initial state: the same as run(), by the map.
[[nodiscard]] Signal apply_map(const Dsf& system, const DsfMap& map, const Signal& u);

/// Numbers of state.
[[nodiscard]] Index state_dimension(const Dsf& system);
/// [T]: the eigenvalues of Λ_t, those of all groups.
[[nodiscard]] std::vector<std::vector<Complex>> eigenvalues(const Dsf& system);
[[nodiscard]] std::vector<Complex> eigenvalues_at(const Dsf& system, Index t);
/// The eigenvalues of any n × n matrix (row-major), in no order.
[[nodiscard]] std::vector<Complex> eigenvalues(std::vector<Complex> matrix, Index n);

/// For how many tokens a token keeps an influence |Φ(t, s)| of at least 1 % of its largest, itself counted: the mean over the
/// tokens s of the first half (and channels), so that each has half of the sequence before it.
struct MemoryHorizon {
  double tokens = 0;
  double unfinished = 0;  // share of those whose influence still lasts at the end of the sequence
};
[[nodiscard]] MemoryHorizon memory_horizon(const DsfMap& map);

/// What is looked at of a map: [T, T] weights, which are Φ itself or, of several groups, the mean of |Φ|; and the horizon. One
/// group at a time is in memory, so that hundreds of channels take milliseconds.
struct DsfWeights {
  std::vector<double> values;
  MemoryHorizon horizon;
};
[[nodiscard]] DsfWeights weights_of(const Dsf& system);

}  // namespace isomer
