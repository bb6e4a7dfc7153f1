#include "isomer/study/kept.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/text.h"
#include "isomer/study/statistics.h"

namespace isomer::study {

namespace {
// A run that diverged has numbers that JSON has not.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(x > 0 ? "inf" : x < 0 ? "-inf" : "nan"); }
double number_of(const Json& x) {
  if (x.is_number()) return x.number();
  return x.text() == "inf" ? kInfinity : x.text() == "-inf" ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
}
}  // namespace

std::string to_json(const CellResult& r) {
  Json curve = Json::array(), numbers = Json::object();
  for (const CellPoint& p : r.curve) curve.push(Json::Array{p.step, number(p.loss), number(p.value)});
  for (const auto& [name, value] : r.numbers) numbers.set(name, number(value));
  return Json::object({{"key", r.key},
                       {"value", number(r.value)},
                       {"validation", number(r.validation)},
                       {"loss", number(r.loss)},
                       {"lower_is_better", r.lower_is_better},
                       {"diverged", r.diverged},
                       {"improving", r.improving},
                       {"steps", r.steps},
                       {"parameters", r.parameters},
                       {"seconds", r.seconds},
                       {"tokens_per_s", r.tokens_per_s},
                       {"curve", curve},
                       {"numbers", numbers}})
             .dump() +
         "\n";
}

CellResult parse_cell(const std::string& text) {
  const Json from = Json::parse(text, "cell");
  CellResult r{
      .key = from.at("key").text(), .value = number_of(from.at("value")), .validation = number_of(from.at("validation"))};
  r.loss = number_of(from.at("loss"));
  r.lower_is_better = from.at("lower_is_better").boolean();
  r.diverged = from.at("diverged").boolean(), r.improving = from.at("improving").boolean();
  r.steps = from.at("steps").integer(), r.parameters = from.at("parameters").integer();
  r.seconds = from.at("seconds").number(), r.tokens_per_s = from.at("tokens_per_s").number();
  for (const Json& point : from.at("curve").items()) {
    const Json::Array& p = point.items();
    require(p.size() == 3, "cell", "expected points of 3 numbers, got ", p.size());
    r.curve.push_back({p[0].integer(), number_of(p[1]), number_of(p[2])});
  }
  for (const auto& [name, value] : from.at("numbers").members()) r.numbers.emplace(name, number_of(value));
  return r;
}

KeptCells::KeptCells(const std::string& folder) : folder_((std::filesystem::path(folder) / "cells").string()) {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) throw Error("cannot write " + folder_ + ": " + problem.message());
}

std::string KeptCells::path(const std::string& key) const { return (std::filesystem::path(folder_) / (key + ".json")).string(); }

std::optional<CellResult> KeptCells::find(const std::string& key) const {
  if (!is_there(path(key))) return {};
  try {
    CellResult result = parse_cell(read_text(path(key)));
    if (result.key == key) return result;
  } catch (const Error&) {
    // As if it had never been run.
  }
  return {};
}

void KeptCells::keep(const CellResult& result) const { write_text(path(result.key), to_json(result)); }

}  // namespace isomer::study
