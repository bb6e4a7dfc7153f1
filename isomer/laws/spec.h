#pragma once
// The tensors of a law as data: names, what their numbers mean, and their axes by letter.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "isomer/base/index.h"

namespace isomer {

/// What a tensor's numbers mean: how tests draw them, and which non-finite values are allowed.
enum class Domain {
  normal,     // any number
  log_decay,  // the logarithm of a decay, mostly ≤ 0; −inf is a decay of exactly 0
  log_input,  // the logarithm of an input gate
  unit,       // in (0, 1)
  positive,   // such as a step in time; 0 is fine
  negative,   // such as the rates of a state that forgets
  gain,       // in (0, 2)
  count,      // a number of tokens; carries no gradient
  scale,      // a logarithm that only fixes a scale (initial_max); carries no gradient
  offsets,    // 64-bit integers that pack sequences
};

/// Does a gradient flow into an input, or out of an output, of this domain?
[[nodiscard]] constexpr bool differentiable(Domain domain) {
  return domain != Domain::count && domain != Domain::scale && domain != Domain::offsets;
}

/// B batch, T tokens, S keys; Gq, Gk, Gv the heads of q, k, v, and H the largest of these; K key size, V value size, N state
/// size, C channels; n the number of sequences (B, or those of offsets).
enum class Letter : std::uint8_t { B, T, S, Gq, Gk, Gv, H, K, V, N, C, n };
inline constexpr std::array<std::string_view, 12> kLetters{"B", "T", "S", "Gq", "Gk", "Gv", "H", "K", "V", "N", "C", "n"};
[[nodiscard]] constexpr std::string_view name_of(Letter letter) { return kLetters[std::size_t(letter)]; }

/// The axes of a tensor.
struct Axes {
  std::array<Letter, 4> letters{};
  int rank = 0;

  [[nodiscard]] constexpr const Letter* begin() const { return letters.data(); }
  [[nodiscard]] constexpr const Letter* end() const { return letters.data() + rank; }
  [[nodiscard]] constexpr bool has(Letter letter) const {
    for (const Letter own : *this)
      if (own == letter) return true;
    return false;
  }
  constexpr bool operator==(const Axes& other) const = default;
};

/// "B T H" as axes; a letter that there is not does not compile, or throws Error.
[[nodiscard]] constexpr Axes axes_of(std::string_view text);

struct TensorSpec {
  std::string_view name;
  std::string_view dims;  // "B T Gq K"; alternatives stand behind '|': "B T H|H". Those of `offsets` are "n+1"
  Domain domain;
  bool required;
  std::array<Axes, 2> axes{};  // the alternatives
  int alternatives = 0;

  /// An output without a gradient (log_sum) has Domain::scale.
  constexpr TensorSpec(std::string_view own_name, std::string_view own_dims, Domain own_domain = Domain::normal,
                       bool own_required = false)
      : name(own_name), dims(own_dims), domain(own_domain), required(own_required) {
    if (domain == Domain::offsets) return;
    for (std::string_view rest = dims; !rest.empty();) {
      const std::size_t bar = std::min(rest.find('|'), rest.size());
      axes[std::size_t(alternatives++)] = axes_of(rest.substr(0, bar));
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
  }
  [[nodiscard]] constexpr std::span<const Axes> all() const { return {axes.data(), std::size_t(alternatives)}; }
};

/// What a stream keeps: an input that comes out as an output, or the tokens of an input, which those that follow look back at.
struct StateSpec {
  static constexpr std::size_t kTokens = std::size_t(-1);

  std::string_view name;
  std::size_t input, output;  // the places of initial_NAME and final_NAME, or of the input and kTokens
  double start = 0;           // of its numbers, before the first token

  [[nodiscard]] constexpr bool grows() const { return output == kTokens; }
};

/// Sizes of axes by letter, for tools and tests.
using Sizes = std::map<std::string, Index, std::less<>>;

/// The same for calls. What does not apply is 1.
struct LawSizes {
  Index B = 1, T = 1, S = 1, Gq = 1, Gk = 1, Gv = 1, H = 1, K = 1, V = 1, N = 1, C = 1, n = 1;

  [[nodiscard]] constexpr Index& operator[](Letter letter) { return this->*kMembers[std::size_t(letter)]; }
  [[nodiscard]] constexpr Index operator[](Letter letter) const { return this->*kMembers[std::size_t(letter)]; }

 private:
  static const std::array<Index LawSizes::*, kLetters.size()> kMembers;
};
inline constexpr std::array<Index LawSizes::*, kLetters.size()> LawSizes::kMembers{
    &LawSizes::B, &LawSizes::T, &LawSizes::S, &LawSizes::Gq, &LawSizes::Gk, &LawSizes::Gv,
    &LawSizes::H, &LawSizes::K, &LawSizes::V, &LawSizes::N,  &LawSizes::C,  &LawSizes::n};

/// Which of a law's inputs are there, by their places.
struct Given {
  std::uint32_t bits = 0;
  [[nodiscard]] constexpr bool operator[](std::size_t place) const { return (bits >> place & 1) != 0; }
  constexpr void add(std::size_t place) { bits |= std::uint32_t(1) << place; }
};

namespace internal {
[[noreturn]] void unknown_letter(std::string_view text);
}

constexpr Axes axes_of(std::string_view text) {
  Axes axes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::size_t letter = 0;
    while (letter < kLetters.size() && kLetters[letter] != text.substr(0, end)) ++letter;
    if (letter == kLetters.size() || axes.rank == 4) internal::unknown_letter(text);
    axes.letters[std::size_t(axes.rank++)] = Letter(letter);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return axes;
}

}  // namespace isomer
