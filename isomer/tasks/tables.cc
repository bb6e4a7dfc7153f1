// Tables that nobody has collected: their columns and classes are what a random network makes of a few random causes, as in the
// prior that TabPFN learned from, made simple. The classes of the first rows are known, those of the others are asked for.
#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 5> kOptions{{
    {"rows", "128", "rows of a table"},
    {"known", "96", "rows at the start whose classes are given"},
    {"features", "100", "numbers of a row; behind its columns they are 0"},
    {"columns", "30", "at most, 2 at least"},
    {"classes", "10", "at most, 2 at least"},
}};

// Of the network that makes a table.
constexpr std::size_t kCauses = 8, kUnits = 24;
constexpr double kNoise = 0.1, kBetweenGroups = 1.5;  // standard deviations
// As tables are prepared for TabPFN (models/table_rows.cc).
constexpr double kSmallest = 1e-6, kLargest = 100;

/// The numbers of one table, kept in a scratch.
struct Table {
  std::span<double> weights, biases, read, centres;  // [units, causes], [units], [units], [classes, causes]
  std::span<double> causes, units, scores, bounds;   // of a row: [causes], [units]; [rows], [classes]
  std::span<std::int64_t> sources, names;            // [columns], what each shows; [classes]

  /// With room for the largest table, so that no later one allocates.
  Table(Scratch& scratch, std::size_t rows, std::size_t columns, std::size_t classes) {
    const std::array sizes{kUnits * kCauses, kUnits, kUnits, classes * kCauses, kCauses, kUnits, rows, classes};
    std::size_t all = 0, at = 0;
    for (const std::size_t size : sizes) all += size;
    scratch.reals.resize(all);
    for (std::size_t i = 0; std::span<double> * part : {&weights, &biases, &read, &centres, &causes, &units, &scores, &bounds}) {
      *part = std::span(scratch.reals).subspan(at, sizes[i]);
      at += sizes[i++];
    }
    scratch.integers.resize(columns + classes);
    sources = std::span(scratch.integers).first(columns);
    names = std::span(scratch.integers).last(classes);
  }
  void use(std::size_t columns, std::size_t classes) {
    sources = sources.first(columns);
    names = names.first(classes);
    centres = centres.first(classes * kCauses);
    bounds = bounds.first(classes - 1);
  }
  void draw_network(Rng& rng) const {
    const double scale = 1 / std::sqrt(double(kCauses));
    for (double& w : weights) w = 2 * scale * rng.normal();
    for (const std::span<double> part : {biases, read, centres})
      for (double& x : part) x = rng.normal();
    for (double& x : centres) x *= kBetweenGroups;
    // A column shows a cause or a unit.
    for (std::int64_t& source : sources) source = std::int64_t(rng.below(kCauses + kUnits));
    for (std::size_t c = 0; c < names.size(); ++c) names[c] = std::int64_t(c);
    draw::shuffle(rng, names);
  }
  /// Of a row of the group, or of none.
  void draw_row(Rng& rng, const double* centre) const {
    for (std::size_t i = 0; i < kCauses; ++i) causes[i] = rng.normal() + (centre != nullptr ? centre[i] : 0);
    for (std::size_t u = 0; u < kUnits; ++u) {
      double sum = biases[u];
      for (std::size_t i = 0; i < kCauses; ++i) sum += weights[u * kCauses + i] * causes[i];
      units[u] = std::tanh(sum);
    }
  }
  [[nodiscard]] double score() const {
    double sum = 0;
    for (std::size_t u = 0; u < kUnits; ++u) sum += read[u] * units[u];
    return sum;
  }
  [[nodiscard]] double shown(std::int64_t source) const {
    return std::size_t(source) < kCauses ? causes[std::size_t(source)] : units[std::size_t(source) - kCauses];
  }
};

class Tables final : public Task {
 public:
  explicit Tables(const TaskOptions& options)
      : Task(options), columns_(options.size("columns", 2, 1 << 16)), classes_(options.size("classes", 2, 1 << 10)) {
    const Index rows = options.size("rows", 3, 1 << 20), features = options.size("features", 2, 1 << 16);
    shape_ = {.kind = TaskKind::table,
              .metric = Metric::token_accuracy,
              .length = rows,
              .classes = classes_,
              .features = features,
              .known = options.size("known", 2, rows - 1)};
    require(columns_ <= features, "tables", "expected at most ", features, " columns, which is features, got ", columns_);
  }

 private:
  void draw(Example& e) const override {
    const Index F = draw::between(e.rng, 2, columns_), C = draw::between(e.rng, 2, classes_);
    Table table(e.scratch, std::size_t(shape_.length), std::size_t(columns_), std::size_t(classes_));
    table.use(std::size_t(F), std::size_t(C));
    table.draw_network(e.rng);
    const bool groups = e.rng.below(2) == 0;
    for (std::size_t t = 0; t < std::size_t(shape_.length); ++t) {
      const std::size_t group = groups ? std::size_t(e.rng.below(std::uint64_t(C))) : 0;
      table.draw_row(e.rng, groups ? &table.centres[group * kCauses] : nullptr);
      table.scores[t] = groups ? double(group) : table.score();
      float* const row = e.inputs.data() + t * std::size_t(shape_.features);
      for (std::size_t c = 0; c < std::size_t(F); ++c) row[c] = float(table.shown(table.sources[c]) + kNoise * e.rng.normal());
    }
    // Where there are no groups, classes lie between the scores of some rows.
    const std::span bounds = table.bounds;
    for (std::size_t c = 0; c < bounds.size(); ++c)
      bounds[c] = groups ? double(c) : table.scores[std::size_t(e.rng.below(std::uint64_t(shape_.length)))];
    std::ranges::sort(bounds);
    for (std::size_t t = 0; t < std::size_t(shape_.length); ++t) {
      const std::int64_t name = table.names[std::size_t(std::ranges::lower_bound(bounds, table.scores[t]) - bounds.begin())];
      if (t < e.known.size())
        e.known[t] = float(name);
      else
        e.labels[t] = name;
    }
    for (Index c = 0; c < F; ++c) standardise(e.inputs.subspan(std::size_t(c)), double(shape_.features) / double(F));
  }

  /// A column by its known rows; tables with few columns have larger numbers, so that rows are as long.
  void standardise(std::span<float> column, double factor) const {
    const auto at = [&](Index t) -> float& { return column[std::size_t(t * shape_.features)]; };
    double sum = 0, squares = 0;
    for (Index t = 0; t < shape_.known; ++t) sum += double(at(t));
    const double mean = sum / double(shape_.known);
    for (Index t = 0; t < shape_.known; ++t) squares += (double(at(t)) - mean) * (double(at(t)) - mean);
    const double deviation = std::sqrt(squares / double(shape_.known - 1)) + kSmallest;
    for (Index t = 0; t < shape_.length; ++t)
      at(t) = float(std::clamp((double(at(t)) - mean) / deviation, -kLargest, kLargest) * factor);
  }

  Index columns_, classes_;
};
}  // namespace

const TaskType task::tables{
    .name = "tables",
    .source = "Hollmann et al. 2022 (TabPFN), with a simpler prior",
    .summary = "the classes of a table's last rows, from its first rows and their classes",
    .own_options = kOptions,
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Tables>(options); },
};

}  // namespace isomer
