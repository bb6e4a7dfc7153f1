#include "isomer/models/foreign/weight_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "isomer/base/error.h"

namespace isomer {

namespace {
constexpr std::size_t kListed = 8;  // names in an error

/// A dense tensor as rows of equal size: [N, rest]. A vector, and what a rule takes in any shape, has rows of one number.
struct Matrix {
  Index rows = 1, columns = 1;
  explicit Matrix(const std::vector<Index>& shape, const WeightRule& rule) {
    for (std::size_t i = 0; i < shape.size(); ++i) (i == 0 || rule.any_shape ? rows : columns) *= shape[i];
  }
};

std::string list_of(const std::vector<std::string>& names) {
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), kListed); ++i) all += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kListed) all += " and " + std::to_string(names.size() - kListed) + " more";
  return all;
}

/// The numbers as F32, dense.
std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> all(std::size_t(view.size()));
  MutableTensorView to{
      .type = Type::f32, .data = reinterpret_cast<std::byte*>(all.data()), .rank = view.rank, .shape = view.shape, .stride = {}};
  Index step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    to.stride[std::size_t(axis)] = step;
    step *= view.shape[std::size_t(axis)];
  }
  copy_numbers(view, to);
  return all;
}

/// Do our numbers fit the rows of theirs that the rule names?
bool fits(const WeightRule& rule, const Matrix& ours, const Matrix& theirs) {
  const Index rows = ours.rows, columns = ours.columns;
  const Index their_rows = rule.turned ? theirs.columns : theirs.rows, their_columns = rule.turned ? theirs.rows : theirs.columns;
  if (!rule.factors.empty() && Index(rule.factors.size()) != rows) return false;
  if (rule.any_shape && rows != their_rows) return false;
  if (rule.places.empty()) return rows == their_rows && columns == their_columns;
  return Index(rule.places.size()) == rows && columns == their_columns &&
         std::ranges::all_of(rule.places, [&](Index row) { return row >= 0 && row < their_rows; });
}

/// Where number (r, c) of ours stands in theirs.
struct Places {
  const WeightRule& rule;
  Matrix theirs;
  [[nodiscard]] Index operator()(Index r, Index c) const {
    const Index row = rule.places.empty() ? r : rule.places[std::size_t(r)];
    return rule.turned ? c * theirs.columns + row : row * theirs.columns + c;
  }
};

/// Which of its names theirs goes by.
const std::string& name_in(const TensorViews& theirs, const WeightRule& rule) {
  return !rule.also.empty() && !theirs.contains(rule.theirs) && theirs.contains(rule.also) ? rule.also : rule.theirs;
}

bool plain(const WeightRule& rule) {
  return rule.factors.empty() && rule.places.empty() && !rule.turned && rule.factor == 1 && rule.constant == 0;
}

Tensor made_of(const WeightRule& rule, const std::vector<Index>& shape, const TensorView& view) {
  const Matrix ours(shape, rule);
  const Places place{rule, Matrix(view.dims(), rule)};
  const std::vector<float> theirs = floats_of(view);
  Tensor tensor(Type::f32, shape);
  float* to = tensor.data<float>();
  for (Index r = 0; r < ours.rows; ++r)
    for (Index c = 0; c < ours.columns; ++c)
      to[r * ours.columns + c] = float(rule.factor_of(r) * double(theirs[std::size_t(place(r, c))]) + rule.constant);
  return tensor;
}

struct Problems {
  std::vector<std::string> missing, unknown, misshapen;
  void fail_if_any() const {
    std::string text;
    const auto add = [&](const char* what, const std::vector<std::string>& names) {
      if (!names.empty()) text += (text.empty() ? "" : "; ") + std::string(what) + list_of(names);
    };
    add("missing weights: ", missing);
    add("of another shape: ", misshapen);
    add("unknown weights: ", unknown);
    if (!text.empty()) throw Error(text);
  }
};
}  // namespace

WeightRule& WeightRule::rows(Index first, Index count) {
  std::vector<Index> all(std::size_t(count), 0);
  std::iota(all.begin(), all.end(), first);
  return at(std::move(all));
}
WeightRule& WeightRule::at(std::vector<Index> rows) {
  places = std::move(rows);
  return *this;
}
WeightRule& WeightRule::transposed() {
  turned = true;
  return *this;
}
WeightRule& WeightRule::reshaped() {
  any_shape = true;
  return *this;
}
WeightRule& WeightRule::plus(double number) {
  constant = number;
  return *this;
}
WeightRule& WeightRule::times(double number) {
  factor = number;
  return *this;
}
WeightRule& WeightRule::times_each(std::vector<double> numbers) {
  factors = std::move(numbers);
  return *this;
}
WeightRule& WeightRule::if_there() {
  optional = true;
  return *this;
}

WeightRule& WeightTable::Scope::take(std::string_view our_name, std::string_view their_name) const {
  return table.rules_.emplace_back(WeightRule{.ours = ours + std::string(our_name), .theirs = theirs + std::string(their_name)});
}

WeightRule& WeightTable::Scope::take_either(std::string_view our_name, std::string_view their_name,
                                            std::string_view other) const {
  WeightRule& rule = take(our_name, their_name);
  rule.also = theirs + std::string(other);
  return rule;
}

void WeightTable::Scope::linear(std::string_view our_name, std::string_view their_name, bool bias) const {
  const Scope both = in(std::string(our_name) + ".", std::string(their_name) + ".");
  both.take("weight", "weight");
  if (bias) both.take("bias", "bias");
}

void WeightTable::Scope::know(std::string_view our_name, std::vector<double> numbers) const {
  table.rules_.push_back({.ours = ours + std::string(our_name), .theirs = {}, .known = std::move(numbers)});
}

WeightTable::Scope WeightTable::Scope::in(std::string_view our_prefix, std::string_view their_prefix) const {
  return {table, ours + std::string(our_prefix), theirs + std::string(their_prefix)};
}

WeightTable::Scope WeightTable::in(std::string_view ours, std::string_view theirs) {
  return {*this, std::string(ours), std::string(theirs)};
}

void WeightTable::find_place(const TensorViews& theirs) {
  const auto rule = std::ranges::find_if(rules_, [](const WeightRule& one) { return !one.theirs.empty() && !one.optional; });
  if (rule == rules_.end() || theirs.contains(rule->theirs)) return;
  const std::string end = "." + rule->theirs;
  const auto found = std::ranges::find_if(theirs, [&](const auto& weight) { return weight.first.ends_with(end); });
  if (found == theirs.end()) return;
  place_ = found->first.substr(0, found->first.size() - end.size() + 1);
  for (WeightRule& one : rules_)
    for (std::string* name : {&one.theirs, &one.also})
      if (!name->empty()) *name = place_ + *name;
  for (Part& part : parts_) part.start = place_ + part.start;
}

bool WeightTable::left(std::string_view theirs) const {
  return !theirs.starts_with(place_) || in_part(theirs) ||
         std::ranges::any_of(left_, [&](const std::string& end) { return theirs.ends_with(end); });
}

bool WeightTable::in_part(std::string_view theirs) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return theirs.starts_with(part.start); });
}

TakenWeights take_weights(const WeightTable& table, const std::vector<WeightShape>& shapes, const TensorViews& theirs) {
  std::map<std::string, const WeightRule*, std::less<>> by_name;
  for (const WeightRule& rule : table.rules()) by_name.emplace(rule.ours, &rule);
  TakenWeights taken;
  Problems problems;
  std::set<std::string, std::less<>> used;
  for (const WeightRule& rule : table.rules()) used.insert({rule.theirs, rule.also});
  for (const auto& [name, shape] : shapes) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw Error("no rule for the weight " + name);
    const WeightRule& rule = *found->second;
    const auto view = theirs.find(name_in(theirs, rule));
    if (view == theirs.end() && (rule.optional || !rule.known.empty())) {
      Tensor& tensor = taken.made.emplace_back(Type::f32, shape);
      if (!rule.known.empty())
        require(tensor.size() == Index(rule.known.size()), name.c_str(), "expected ", tensor.size(), " numbers");
      for (Index i = 0; i < tensor.size(); ++i)
        tensor.data<float>()[i] = float(rule.known.empty() ? rule.constant : rule.known[std::size_t(i)]);
      taken.views.emplace(name, view_of(tensor));
      continue;
    }
    if (view == theirs.end()) {
      problems.missing.push_back(rule.theirs);
      continue;
    }
    const Matrix ours(shape, rule);
    if (!floating(view->second.type) || !fits(rule, ours, Matrix(view->second.dims(), rule))) {
      problems.misshapen.push_back(rule.theirs + " " + text_of(view->second.dims()) + " for " + name + " " + text_of(shape));
      continue;
    }
    if (plain(rule))
      taken.views.emplace(name, dense_view(view->second.type, view->second.data, shape));
    else
      taken.views.emplace(name, view_of(taken.made.emplace_back(made_of(rule, shape, view->second))));
  }
  for (const auto& [name, view] : theirs)
    if (!used.contains(name) && !table.left(name)) problems.unknown.push_back(name);
  problems.fail_if_any();
  return taken;
}

TensorViews plain_weights(const WeightTable& table, const TensorViews& theirs) {
  TensorViews views;
  for (const WeightRule& rule : table.rules())
    if (const auto view = theirs.find(name_in(theirs, rule)); plain(rule) && view != theirs.end())
      views.emplace(rule.ours, view->second);
  return views;
}

Tensors put_weights(const WeightTable& table, const TensorViews& ours, const TensorViews& theirs, Putting what) {
  std::map<std::string, std::vector<float>> all;
  for (const WeightRule& rule : table.rules()) {
    const auto own = ours.find(rule.ours);
    const std::string& name = name_in(theirs, rule);
    const auto view = theirs.find(name);
    if (own == ours.end() || view == theirs.end()) continue;
    // Rows of theirs that none of ours is made of stay as they were.
    if (!all.contains(name))
      all[name] = what == Putting::weights ? floats_of(view->second) : std::vector<float>(std::size_t(view->second.size()));
    std::vector<float>& to = all[name];
    const Matrix matrix(own->second.dims(), rule);
    const Places place{rule, Matrix(view->second.dims(), rule)};
    const std::vector<float> from = floats_of(own->second);
    for (Index r = 0; r < matrix.rows; ++r)
      for (Index c = 0; c < matrix.columns; ++c) {
        const double number = from[std::size_t(r * matrix.columns + c)];
        float& there = to[std::size_t(place(r, c))];
        // Several of ours may be the same of theirs, as tied ones are: their gradients add up.
        if (what == Putting::gradients)
          there += float(number * rule.factor_of(r));
        else
          there = float((number - rule.constant) / rule.factor_of(r));
      }
  }
  for (const auto& [name, view] : theirs)
    if (what == Putting::weights && table.in_part(name) && floating(view.type)) all.emplace(name, floats_of(view));
  Tensors tensors;
  for (auto& [name, numbers] : all) {
    const TensorView& view = theirs.at(name);
    Tensor tensor(what == Putting::gradients ? Type::f32 : view.type, view.dims());
    copy_numbers(dense_view(Type::f32, reinterpret_cast<const std::byte*>(numbers.data()), view.dims()), mutable_view_of(tensor));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::vector<Index> rows_of_pairs(Index heads, Index size) {
  std::vector<Index> rows;
  for (Index h = 0; h < heads; ++h)
    for (Index i = 0; i < size; ++i) rows.push_back(h * size + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1));
  return rows;
}

std::vector<Index> rows_of_groups(Index groups, Index size, Index first, Index count) {
  std::vector<Index> rows;
  for (Index g = 0; g < groups; ++g)
    for (Index i = 0; i < count; ++i) rows.push_back(g * size + first + i);
  return rows;
}

std::vector<Index> numbers_turned(Index matrices, Index rows, Index columns) {
  std::vector<Index> places;
  for (Index m = 0; m < matrices; ++m)
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) places.push_back((m * columns + c) * rows + r);
  return places;
}

}  // namespace isomer
