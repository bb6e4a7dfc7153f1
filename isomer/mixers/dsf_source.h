#pragma once
// The inputs of one sequence and head of a law's call, by name and token, for the realisations of dsf.h. Internal to this folder.
#include <cmath>
#include <string>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/laws/layout.h"
#include "isomer/mixers/dsf.h"

namespace isomer::dsf_detail {

using Vector = std::vector<double>;

struct Source {
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
void normalise(Dsf& system, const Vector& eta, const Source& from);

[[nodiscard]] Dsf realise_attention(const Source& from);
[[nodiscard]] Dsf realise_scalar_decay(const Source& from);
[[nodiscard]] Dsf realise_channel_decay(const Source& from);
[[nodiscard]] Dsf realise_delta(const Source& from);
[[nodiscard]] Dsf realise_scan(const Source& from);

}  // namespace isomer::dsf_detail
