#pragma once
// How evidence becomes a verdict. A rule is stated with its claim, before any number is seen, as data: a sentence and a function.
//
//   const Rule rule = all_of({greater("softmax", "linear attention", 0.1), slope("error", -1.1, -0.9)});
//   const Decision decision = rule.decide(evidence);      // holds, fails or undecided, and why
//
// Every rule looks at an interval over seeds (statistics.h): it holds when the whole interval says so, fails when the whole
// interval says the opposite, and is undecided in between. Of one seed the interval is the whole line, so that no verdict comes
// from one noisy run. A threshold that is changed after numbers were seen needs a decision record.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/study/evidence.h"

namespace isomer::study {

enum class Verdict { holds, fails, undecided };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct Decision {
  Verdict verdict = Verdict::undecided;
  std::string why;  // one sentence with the numbers that decided
};

struct Rule {
  std::string text;  // "softmax > linear attention by at least 0.1"
  std::function<Decision(const Evidence&)> decide;
};

/// quantity ≤ limit, quantity ≥ limit.
[[nodiscard]] Rule at_most(std::string quantity, double limit);
[[nodiscard]] Rule at_least(std::string quantity, double limit);
/// more − less ≥ by, seed by seed where both have as many.
[[nodiscard]] Rule greater(std::string more, std::string less, double by);
/// |a − b| ≤ within.
[[nodiscard]] Rule equal(std::string a, std::string b, double within);
/// The slope of log y against log x of a series, fitted for each seed, lies in [low, high].
[[nodiscard]] Rule slope(std::string series, double low, double high);
/// No step from a point to the next goes the wrong way by more than `slack`.
enum class Trend { rising, falling };
[[nodiscard]] Rule monotone(std::string series, Trend trend, double slack);
/// The last point below x = at is lower than the first at or above it by at least `by`, and no other step is larger.
[[nodiscard]] Rule jump(std::string series, double at, double by);
/// Each quantity is at least the next, less `slack`.
[[nodiscard]] Rule ordering(std::vector<std::string> quantities, double slack);
/// Holds when all hold, fails when one fails.
[[nodiscard]] Rule all_of(std::vector<Rule> rules);

}  // namespace isomer::study
