#pragma once
// A claim: one measurable statement of a source, and the experiment that decides it. claims/ has one file a source.
//
//   for (const Claim* claim : find_claims({})) std::cout << claim->statement << '\n';
//
// An analytic claim measures at once (`measure`); a trained one names its cells first (`cells`), small runs through the ordinary
// trainer, and reads its evidence off them when they are done (`read`). Which cells it needs may depend on those that are done,
// as in a search: it is asked again until it names no new ones.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/study/cell.h"
#include "isomer/study/evidence.h"
#include "isomer/study/rules.h"

namespace isomer::study {

enum class Mode { quick, full };
[[nodiscard]] std::string_view name_of(Mode mode);
/// Runs of every trained setting, unless others are asked for.
[[nodiscard]] constexpr Index usual_seeds(Mode mode) { return mode == Mode::full ? 5 : 3; }

/// How much a claim may spend.
struct Budget {
  Mode mode = Mode::quick;
  Index seeds = 3;

  /// A number for each mode.
  template <class N>
  [[nodiscard]] N pick(N quick, N full) const {
    return mode == Mode::quick ? quick : full;
  }
  /// The seeds of what takes no training: 1 … 5, or more if more are asked for.
  [[nodiscard]] std::vector<std::uint64_t> draws() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t seed = 1; seed <= std::uint64_t(std::max<Index>(seeds, 5)); ++seed) all.push_back(seed);
    return all;
  }
};

/// What the source printed; without a value it gave a direction only.
struct Published {
  std::string name;
  std::optional<double> value = {};
  std::string where;
};

struct Claim {
  std::string id;             // "inline.confusion"
  std::string statement;      // in our words
  std::string quantity = {};  // what is measured, and how
  Rule rule;
  std::vector<Published> published = {};
  Figure figure = {};
  std::vector<std::pair<std::string, std::string>> units = {};  // of quantities that begin so, where it is not that of the figure
  std::string otherwise = {};  // where it fails here: why (size, data, the source), and what was tried
  std::string unclear = {};    // the same where it is undecided
  bool full_only = false;      // no small setting shows it: not part of a quick study
  std::function<void(const Budget&, Context&, Evidence&)> measure = {};           // analytic
  std::function<std::vector<Cell>(const Budget&, const Cells& done)> cells = {};  // trained: all that are known to be needed
  std::function<void(const Budget&, const Cells&, Evidence&)> read = {};

  [[nodiscard]] bool trained() const { return bool(cells); }
  /// Why a verdict is not that it holds.
  [[nodiscard]] std::string_view reason(Verdict verdict) const {
    return verdict == Verdict::fails ? otherwise : verdict == Verdict::undecided ? unclear : std::string_view();
  }
  /// "inline".
  [[nodiscard]] std::string source() const { return id.substr(0, id.find('.')); }
};

/// A source's name in full, and its claims.
struct Source {
  std::string id, title, about;
  std::vector<Claim> claims;
};

/// All of them, in the order of the documentation.
[[nodiscard]] std::span<const Source> sources();
/// Those that the names ask for: ids of claims or of sources; all without names. Quick: without those that are for the full study
/// only. Throws Error for an unknown name, with the nearest, and for the name of a claim that a quick study does not have.
[[nodiscard]] std::vector<const Claim*> find_claims(std::span<const std::string> names, Mode mode = Mode::full);

}  // namespace isomer::study
