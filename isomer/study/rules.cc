#include "isomer/study/rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"

namespace isomer::study {

namespace {
/// Is the interval within [low, high], wholly outside of it, or neither? NaN is neither.
Verdict place(const Interval& x, double low, double high) {
  if (x.low >= low && x.high <= high) return Verdict::holds;
  if (x.high < low || x.low > high) return Verdict::fails;
  return Verdict::undecided;
}

/// a − b, seed by seed; of different numbers of seeds (or one without seeds), and of models that were still learning, the
/// intervals are taken apart.
Interval difference(const Sample& a, const Sample& b) {
  if (a.values.size() == b.values.size() && a.values.size() > 1 && !a.reach && !b.reach) {
    std::vector<double> values;
    for (std::size_t i = 0; i < a.values.size(); ++i) values.push_back(a.values[i] - b.values[i]);
    return bootstrap(values);
  }
  const Interval x = a.interval(), y = b.interval();
  return {.mean = x.mean - y.mean, .low = x.low - y.high, .high = x.high - y.low, .n = std::min(x.n, y.n)};
}

/// The weakest of several: one that fails, else one that is undecided.
Verdict together(Verdict a, Verdict b) {
  if (a == Verdict::fails || b == Verdict::fails) return Verdict::fails;
  return a == Verdict::undecided || b == Verdict::undecided ? Verdict::undecided : Verdict::holds;
}

/// Values of a series by seed: as many as every point has.
std::vector<std::vector<double>> by_seed(const Series& series) {
  require(!series.points.empty(), "study", "expected points in the series ", series.name);
  std::size_t seeds = series.points.front().values.size();
  for (const Point& point : series.points) seeds = std::min(seeds, point.values.size());
  std::vector<std::vector<double>> all(seeds);
  for (std::size_t seed = 0; seed < seeds; ++seed)
    for (const Point& point : series.points) all[seed].push_back(point.values[seed]);
  return all;
}

/// Was a model of the series still learning?
bool open(const Series& series) {
  return std::ranges::any_of(series.points, [](const Point& point) { return point.reach.has_value(); });
}

bool analytic(const Series& series) {
  return std::ranges::all_of(series.points, [](const Point& point) { return point.analytic; });
}

struct Jump {
  Interval rise, lead;  // the step there, and how far it is ahead of the largest other one
};
Jump jump_of(const Series& line, std::size_t place) {
  if (open(line)) {
    const auto step = [&](std::size_t i) { return difference(line.points[i], line.points[i - 1]); };
    const Interval rise = step(place);
    Interval other{-kInfinity, -kInfinity, -kInfinity};
    for (std::size_t i = 1; i < line.points.size(); ++i) {
      if (i == place) continue;
      const Interval at = step(i);
      other = {std::max(other.mean, at.mean), std::max(other.low, at.low), std::max(other.high, at.high)};
    }
    return {rise, {rise.mean - other.mean, rise.low - other.high, rise.high - other.low, rise.n}};
  }
  std::vector<double> rises, leads;
  for (const auto& ys : by_seed(line)) {
    const double rise = ys[place] - ys[place - 1];
    double other = -kInfinity;
    for (std::size_t i = 1; i < ys.size(); ++i)
      if (i != place) other = std::max(other, ys[i] - ys[i - 1]);
    rises.push_back(rise);
    leads.push_back(std::min(rise - other, 1e300));
  }
  if (analytic(line)) return {bounded(rises.at(0), 0), bounded(leads.at(0), 0)};
  return {bootstrap(rises), bootstrap(leads)};
}

Rule within_limits(std::string quantity, double low, double high, std::string text) {
  return {text, [=](const Evidence& found) -> Decision {
            const Interval x = found.quantity(quantity).interval();
            return {place(x, low, high), quantity + " is " + text_of(x)};
          }};
}
}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames{"holds", "fails", "undecided"};
  return kNames[std::size_t(verdict)];
}

Rule at_most(std::string quantity, double limit) {
  std::string text = quantity + " is at most " + text_of(limit);
  return within_limits(std::move(quantity), -kInfinity, limit, std::move(text));
}

Rule at_least(std::string quantity, double limit) {
  std::string text = quantity + " is at least " + text_of(limit);
  return within_limits(std::move(quantity), limit, kInfinity, std::move(text));
}

Rule greater(std::string more, std::string less, double by) {
  return {more + " is above " + less + " by at least " + text_of(by), [=](const Evidence& found) -> Decision {
            const Interval gap = difference(found.quantity(more), found.quantity(less));
            return {place(gap, by, kInfinity), more + " minus " + less + " is " + text_of(gap)};
          }};
}

Rule equal(std::string a, std::string b, double within) {
  return {a + " equals " + b + " within " + text_of(within), [=](const Evidence& found) -> Decision {
            const Interval gap = difference(found.quantity(a), found.quantity(b));
            return {place(gap, -within, within), a + " minus " + b + " is " + text_of(gap)};
          }};
}

Rule slope(std::string series, double low, double high) {
  return {"the log-log slope of " + series + " lies between " + text_of(low) + " and " + text_of(high),
          [=](const Evidence& found) -> Decision {
            const Series& line = found.series(series);
            std::vector<double> xs, slopes;
            for (const Point& point : line.points) xs.push_back(point.x);
            for (const auto& ys : by_seed(line)) slopes.push_back(log_slope(xs, ys));
            Interval fitted = analytic(line) && !slopes.empty() ? bounded(slopes[0], 0) : bootstrap(slopes);
            if (open(line)) fitted.low = -kInfinity, fitted.high = kInfinity;
            return {place(fitted, low, high), "the slope of " + series + " is " + text_of(fitted)};
          }};
}

Rule monotone(std::string series, Trend trend, double slack) {
  const char* word = trend == Trend::rising ? " rises" : " falls";
  return {series + word + " from point to point, up to " + text_of(slack), [=](const Evidence& found) -> Decision {
            const Series& line = found.series(series);
            Decision decision{Verdict::holds, series + word + " at every step"};
            for (std::size_t i = 1; i < line.points.size(); ++i) {
              const Point &from = line.points[i - 1], &to = line.points[i];
              const Interval step = trend == Trend::rising ? difference(to, from) : difference(from, to);
              const Verdict verdict = place(step, -slack, kInfinity);
              if (together(decision.verdict, verdict) == decision.verdict) continue;
              decision = {verdict, series + " goes from " + text_of(from.interval()) + " at " + text_of(from.x) + " to " +
                                       text_of(to.interval()) + " at " + text_of(to.x)};
            }
            return decision;
          }};
}

Rule jump(std::string series, double at, double by) {
  return {series + " rises by at least " + text_of(by) + " where x reaches " + text_of(at) + ", and nowhere more",
          [=](const Evidence& found) -> Decision {
            const Series& line = found.series(series);
            const auto after = std::ranges::lower_bound(line.points, at, {}, &Point::x);
            require(after != line.points.begin() && after != line.points.end(), "study", "expected points of ", series,
                    " on both sides of ", at);
            const auto [rise, lead] = jump_of(line, std::size_t(after - line.points.begin()));
            return {together(place(rise, by, kInfinity), place(lead, 0, kInfinity)),
                    series + " rises by " + text_of(rise) + " there, " + text_of(lead) + " more than at any other step"};
          }};
}

Rule ordering(std::vector<std::string> quantities, double slack) {
  std::string text = quantities.at(0);
  for (std::size_t i = 1; i < quantities.size(); ++i) text += " >= " + quantities[i];
  text += slack > 0 ? ", up to " + text_of(slack) : "";
  return {text, [=](const Evidence& found) -> Decision {
            Decision decision{Verdict::holds, "every one is at least the next"};
            for (std::size_t i = 1; i < quantities.size(); ++i) {
              const Interval gap = difference(found.quantity(quantities[i - 1]), found.quantity(quantities[i]));
              const Verdict verdict = place(gap, -slack, kInfinity);
              if (together(decision.verdict, verdict) == decision.verdict) continue;
              decision = {verdict, quantities[i - 1] + " minus " + quantities[i] + " is " + text_of(gap)};
            }
            return decision;
          }};
}

Rule all_of(std::vector<Rule> rules) {
  std::string text;
  for (const Rule& rule : rules) text += (text.empty() ? "" : "; ") + rule.text;
  return {text, [rules = std::move(rules)](const Evidence& found) {
            Decision all{Verdict::holds, ""};
            std::string reasons;
            for (const Rule& rule : rules) {
              const Decision one = rule.decide(found);
              const Verdict both = together(all.verdict, one.verdict);
              if (both != all.verdict) all = {both, one.why};
              // Two limits of one quantity say the same.
              if (reasons.find(one.why) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + one.why;
            }
            if (all.verdict == Verdict::holds) all.why = reasons;
            return all;
          }};
}

}  // namespace isomer::study
