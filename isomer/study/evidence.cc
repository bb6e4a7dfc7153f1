#include "isomer/study/evidence.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer::study {

namespace {
template <class Named>
Named& find_or_add(std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  if (found != all.end()) return *found;
  all.emplace_back().name = name;
  return all.back();
}

template <class Named>
const Named& find(const std::vector<Named>& all, const char* what, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  require(found != all.end(), "study", "expected the ", what, " ", name, " to have been measured");
  return *found;
}
}  // namespace

Quantity& Evidence::named(std::string_view quantity) { return find_or_add(quantities_, quantity); }

Point& Evidence::point(std::string_view series, double x) {
  std::vector<Point>& points = find_or_add(series_, series).points;
  const auto at = std::ranges::lower_bound(points, x, {}, &Point::x);
  if (at != points.end() && at->x == x) return *at;
  const auto added = points.emplace(at);
  added->x = x;
  return *added;
}

void Evidence::add(std::string_view quantity, double value) { named(quantity).values.push_back(value); }

void Evidence::put(std::string_view quantity, double value, double error) {
  Quantity& to = named(quantity);
  to.values = {value};
  to.analytic = true;
  to.error = error;
}

void Evidence::add(std::string_view series, double x, double value) { point(series, x).values.push_back(value); }

void Evidence::put_point(std::string_view series, double x, double value) {
  Point& to = point(series, x);
  to.values = {value};
  to.analytic = true;
}

void Evidence::set_group(std::string_view series, std::string_view group) { find_or_add(series_, series).group = group; }

void Evidence::set_unit(std::string_view quantity, std::string_view unit) { named(quantity).unit = unit; }

void Evidence::may_reach(std::string_view quantity, double best) { named(quantity).reach = best; }
void Evidence::may_reach(std::string_view series, double x, double best) { point(series, x).reach = best; }
void Evidence::note(std::string sentence) { notes_.push_back(std::move(sentence)); }

const Quantity& Evidence::quantity(std::string_view name) const { return find(quantities_, "quantity", name); }
const Series& Evidence::series(std::string_view name) const { return find(series_, "series", name); }

}  // namespace isomer::study
