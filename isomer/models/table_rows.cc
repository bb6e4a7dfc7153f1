#include "isomer/models/table_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/io/corpus.h"
#include "isomer/models/prompt.h"

namespace isomer {

namespace {
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
// As TabPFN's own preparation has it: added to deviations, and the largest number that is left.
constexpr double kSmallest = 1e-6, kLargest = 100;

double number_of(const std::string& text, const std::string& place, const std::string& column) {
  double number = kMissing;
  if (text.empty()) return number;
  if (!parse_number(text, number) || !std::isfinite(number))
    throw Error(place + ": expected a number or nothing in the column " + column + ", got " + text);
  return number;
}

/// How a column becomes what the model was taught on.
struct Scaling {
  std::size_t column;
  double mean, deviation;
};

/// Of the columns that change.
std::vector<Scaling> scalings(const TableRows& known) {
  std::vector<Scaling> all;
  for (std::size_t c = 0; c < known.columns.size(); ++c) {
    double sum = 0, squares = 0, count = 0, low = kMissing, high = kMissing;
    for (const std::vector<double>& row : known.rows) {
      if (std::isnan(row[c])) continue;
      sum += row[c], ++count;
      low = std::fmin(low, row[c]), high = std::fmax(high, row[c]);
    }
    if (!(low < high)) continue;
    for (const std::vector<double>& row : known.rows)
      if (!std::isnan(row[c])) squares += (row[c] - sum / count) * (row[c] - sum / count);
    all.push_back({c, sum / count, std::sqrt(squares / (count - 1)) + kSmallest});
    require(std::isfinite(all.back().deviation), "table", "expected numbers whose squares have a sum in the column ",
            known.columns[c], ", got larger ones");
  }
  return all;
}

/// Different labels: in the order of numbers where all of them are, else in that of words.
std::vector<std::string> classes_of(const TableRows& known) {
  std::vector<std::string> classes = known.labels;
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  const auto number = [](const std::string& label) {
    double x = kMissing;
    return parse_number(label, x) ? x : kMissing;
  };
  if (std::ranges::all_of(
          classes, [](double x) { return std::isfinite(x); }, number))
    std::ranges::stable_sort(classes, {}, number);
  return classes;
}

}  // namespace

TableRows read_table(const std::string& path, const std::string& label, std::span<const std::string> columns) {
  const NamedRecords file = read_all_records(path);
  const auto place_of = [&](const std::string& name) {
    return std::size_t(std::ranges::find(file.names, name) - file.names.begin());
  };
  const std::size_t label_at = place_of(label);
  TableRows table{.columns = {columns.begin(), columns.end()}};
  if (columns.empty())
    std::ranges::copy_if(file.names, std::back_inserter(table.columns), [&](const auto& name) { return name != label; });
  std::vector<std::size_t> places;
  for (const std::string& column : table.columns) {
    if (places.emplace_back(place_of(column)) == file.names.size())
      throw Error(path + ": expected a column " + column + ", got none");
  }
  for (const std::vector<std::string>& record : file.rows) {
    const std::string row_place = path + ": row " + std::to_string(table.rows.size() + 1);
    std::vector<double>& row = table.rows.emplace_back();
    for (std::size_t c = 0; c < places.size(); ++c) row.push_back(number_of(record[places[c]], row_place, table.columns[c]));
    table.labels.push_back(label_at < record.size() ? record[label_at] : "");
  }
  return table;
}

std::vector<RowClass> classify_rows(const Model<float>& model, const TableRows& known, const TableRows& asked, Context& context) {
  const ModelConfig& config = model.config();
  if (config.kind != ModelKind::table) throw Error("expected a model of tables, got a " + std::string(name_of(config.kind)));
  const std::vector<Scaling> columns = scalings(known);
  const std::vector<std::string> classes = classes_of(known);
  const Index F = config.features, used = Index(columns.size()), n = Index(known.rows.size()), T = n + Index(asked.rows.size());
  require(!std::ranges::count(known.labels, ""), "table", "expected the labels of all rows that are known");
  require(used > 0, "table", "expected a column that is not the same in all rows that are known, got none");
  require(used <= F, "table", "expected at most ", F, " columns that change, got ", used);
  require(Index(classes.size()) <= config.classes, "table", "expected at most ", config.classes, " classes, got ",
          classes.size());
  if (asked.rows.empty()) return {};
  std::vector<float> inputs(std::size_t(T * F)), labels;
  float* to = inputs.data();
  for (const TableRows* part : {&known, &asked})
    for (const std::vector<double>& row : part->rows) {
      for (Index i = 0; i < used; ++i) {
        const Scaling& s = columns[std::size_t(i)];
        const double x = row[s.column], z = std::clamp((x - s.mean) / s.deviation, -kLargest, kLargest);
        // Tables with few columns have larger numbers, so that rows are as long.
        to[i] = std::isnan(x) ? 0.0f : float(z * double(F) / double(used));
      }
      to += F;
    }
  for (const std::string& label : known.labels) labels.push_back(float(std::ranges::find(classes, label) - classes.begin()));
  Tape<float> tape(context, Record::no);
  const Var<float> logits = model.logits(tape, {.B = 1, .T = T, .inputs = inputs, .known = labels}).logits;
  std::vector<RowClass> all;
  for (Index t = n; t < T; ++t) {
    const std::span<const float> row(&logits.value(0, t, 0, 0), classes.size());
    const std::int64_t best = likeliest(row);
    all.push_back({classes[std::size_t(best)], probability_of(best, row)});
  }
  return all;
}

}  // namespace isomer
