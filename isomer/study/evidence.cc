#include "isomer/study/evidence.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer::study {

namespace {
template <class Named>
Named& find_or_add(std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  if (found != all.end()) return *found;
  all.push_back({.name = std::string(name)});
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
  return *points.insert(at, {.x = x});
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

void Evidence::set_unit(std::string_view quantity, std::string_view unit) { named(quantity).unit = unit; }

const Quantity& Evidence::quantity(std::string_view name) const { return find(quantities_, "quantity", name); }
const Series& Evidence::series(std::string_view name) const { return find(series_, "series", name); }

}  // namespace isomer::study
