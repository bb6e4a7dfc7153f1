#pragma once
// What an experiment found, before anybody judges it: named quantities and series, a value for each seed.
//
//   Evidence found;
//   found.add("softmax", 0.99);                      // of seed 1; call it again for the next
//   found.put("largest error", 3e-15, 1e-15);        // no seed enters: the value and a bound of its error
//   found.add("linear attention", 16, 0.35);         // a point of a series, at x = 16
//   found.may_reach("linear attention", 16, 1);      // it was still learning: with more steps, who knows
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/study/statistics.h"

namespace isomer::study {

/// A value for each seed, or one without seeds. What was measured before a model had stopped learning is no more than a bound:
/// its interval goes on to the best value that there is, so that no rule can hold a lack of training against it.
struct Sample {
  std::vector<double> values = {};
  bool analytic = false;
  double error = 0;                  // analytic: a bound
  std::optional<double> reach = {};  // of a model that was still learning

  [[nodiscard]] Interval interval() const { return widened(analytic ? bounded(values.at(0), error) : bootstrap(values), reach); }
};

struct Quantity : Sample {
  std::string name = {}, unit = {};
};

struct Point : Sample {
  double x = 0;
};

struct Series {
  std::string name;
  std::string group = {};          // that it belongs to: drawn alike
  std::vector<Point> points = {};  // by rising x
};

/// How a claim's series are to be drawn. `kind`: lines | loglog | bars | matrix | scatter.
struct Figure {
  std::string kind = "lines", x = {}, y = {}, caption = {};
  std::vector<std::string> names = {};   // of x = 0, 1, 2, …, where it is no number
  bool front = false;                    // with the points that no other one beats by less x and more y
  std::vector<std::string> levels = {};  // quantities that are drawn as lines across
};

class Evidence {
 public:
  /// A value of the next seed.
  void add(std::string_view quantity, double value);
  /// A value without seeds, known up to `error`.
  void put(std::string_view quantity, double value, double error = 0);
  /// A value of the next seed at a point of a series.
  void add(std::string_view series, double x, double value);
  /// A point of a series without seeds.
  void put_point(std::string_view series, double x, double value);
  void set_group(std::string_view series, std::string_view group);
  /// Of a quantity that is not of the figure's kind: "learning rate", "parameters", "tokens/s".
  void set_unit(std::string_view quantity, std::string_view unit);
  /// The quantity, or the point of a series, was still on its way to `best`.
  void may_reach(std::string_view quantity, double best);
  void may_reach(std::string_view series, double x, double best);
  /// A sentence for the reader of the result.
  void note(std::string sentence);

  [[nodiscard]] const std::vector<Quantity>& quantities() const { return quantities_; }
  [[nodiscard]] const std::vector<Series>& series() const { return series_; }
  /// Throw Error when there is none of that name.
  [[nodiscard]] const Quantity& quantity(std::string_view name) const;
  [[nodiscard]] const Series& series(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Quantity& named(std::string_view quantity);
  Point& point(std::string_view series, double x);
  std::vector<Quantity> quantities_;
  std::vector<Series> series_;
  std::vector<std::string> notes_;
};

}  // namespace isomer::study
