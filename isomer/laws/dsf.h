#pragma once
// A law as a dynamical system, for the laws that say how: the matrices of the recurrence, and the inputs of one sequence and head
// by name and token. mixers/dsf.h has what is done with systems.
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/laws/layout.h"

namespace isomer {

using Complex = std::complex<double>;

/// One token's matrices, for all channels or for one of them.
struct DsfToken {
  std::vector<Complex> decay;        // Λ = diag(decay) + left rightᵀ
  std::vector<Complex> left, right;  // empty: Λ is diagonal
  std::vector<Complex> B, C;         // [features]
  Complex D = 0;
};

struct Dsf {
  Index T = 0, channels = 0, features = 0;
  Index groups = 1;                   // 1: the matrices of a token serve all channels (Λ ⊗ I); else one for each channel
  bool centred = false;               // the mean over channels is taken from y (LayerNorm); commutes with everything else
  std::vector<DsfToken> tokens = {};  // [T, groups]
  std::vector<Complex> initial = {};  // [channels, features] h before the first token

  [[nodiscard]] DsfToken& token(Index t, Index group) { return tokens[std::size_t(t * groups + group)]; }
  [[nodiscard]] const DsfToken& token(Index t, Index group) const { return tokens[std::size_t(t * groups + group)]; }
  [[nodiscard]] Index group_of_channel(Index c) const { return groups == 1 ? 0 : c; }
};

/// Which part of a call: a sequence (row of the batch, or one that offsets packs) and a head (0 for scan, which has none).
struct DsfPlace {
  Index sequence = 0, head = 0;
};

struct DsfOptions {
  /// Where a normaliser η_t goes: into the state by the ratio Λ_t = η_{t−1}/η_t, which telescopes, or into C_t.
  enum class Eta { telescoped, read_out };
  Eta eta = Eta::telescoped;
  /// Attention: none: the unrolled form, whose state is a slot for each key that is kept. P: the recurrence on all monomials of
  /// the key up to order P; exact for kernel=taylor of that order, the truncated series for kernel=exp. No window, no sinks.
  std::optional<int> order = {};
};

namespace dsf_detail {
using Vector = std::vector<double>;

/// h before the first token: the state's column of each channel in the first K features.
void start_from(Dsf& system, const Vector& state);
[[nodiscard]] double dot(const Vector& a, const Vector& b);
}  // namespace dsf_detail

/// What a law's realisation reads.
struct DsfSource {
  using Vector = dsf_detail::Vector;

  const Tensors& inputs;
  const Settings& settings;
  Sizes sizes;
  Sequence sequence;
  DsfPlace place;
  DsfOptions options;

  [[nodiscard]] bool given(std::string_view name) const { return inputs.contains(name); }
  [[nodiscard]] const Tensor& tensor(std::string_view name) const { return inputs.find(name)->second; }
  [[nodiscard]] Index size(const char* letter) const { return sizes.at(letter); }
  [[nodiscard]] std::string text(std::string_view setting, std::string_view fallback) const {
    const auto found = settings.find(setting);
    return found == settings.end() ? std::string(fallback) : found->second;
  }
  [[nodiscard]] double scale() const { return read_number(settings, "scale", 1 / std::sqrt(double(size("K")))); }

  /// Row t of the sequence, of the head's group: [B,T,G,D].
  [[nodiscard]] Vector row(std::string_view name, Index t) const;
  /// A number of the head and token: [B,T,H], or [H] for all tokens. `fallback` when it is not given.
  [[nodiscard]] double number(std::string_view name, Index t, double fallback) const;
  /// Row t of a tensor without heads: [B,T,D].
  [[nodiscard]] Vector plain_row(std::string_view name, Index t) const;
  /// The part of an initial state that belongs to the sequence (and head): [n,H,…], [n,…] with `headless`. Zeros if not given.
  enum class Heads { own, none };
  [[nodiscard]] Vector state(std::string_view name, Index length, Heads heads = Heads::own) const;

  /// T tokens with matrices of `features` features, all zero but Λ = 1, and no initial state.
  [[nodiscard]] Dsf blank(Index T, Index channels, Index features, Index groups = 1) const;
};

/// y_t becomes y_t / η_t, as the options want it. η before the first token is 1 if there is an initial state.
void normalise(Dsf& system, const dsf_detail::Vector& eta, const DsfSource& from);

}  // namespace isomer
