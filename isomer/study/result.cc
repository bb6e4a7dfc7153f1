#include "isomer/study/result.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/study/statistics.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {
Json to_json(const Result::Measured& m) {
  return Json::object({{"name", m.name},
                       {"value", m.interval.mean},
                       {"low", m.interval.low},
                       {"high", m.interval.high},
                       {"n", m.interval.n},
                       {"unit", m.unit}});
}

/// A bound that is not finite is null in the file, and is none again.
Interval interval_of(const Json& value, const Json& low, const Json& high, Index n) {
  return {.mean = value.number(),
          .low = low.is_null() ? -kInfinity : low.number(),
          .high = high.is_null() ? kInfinity : high.number(),
          .n = n};
}

Verdict verdict_named(const std::string& name) {
  for (const Verdict verdict : {Verdict::holds, Verdict::fails, Verdict::undecided})
    if (name_of(verdict) == name) return verdict;
  throw Error("expected a verdict holds, fails or undecided, got " + name);
}

Json figure_json(const Result& result) {
  Json lines = Json::array();
  for (const Result::Line& line : result.series) {
    Json points = Json::array();
    for (const auto& [x, y] : line.points) points.push(Json::Array{x, y.mean, y.low, y.high});
    Json to = Json::object({{"name", line.name}, {"points", points}});
    if (!line.group.empty()) to.set("group", line.group);
    lines.push(to);
  }
  const Figure& figure = result.figure;
  Json to = Json::object({{"kind", figure.kind}, {"x", figure.x}, {"y", figure.y}, {"caption", figure.caption}});
  for (const auto& [key, texts] : {std::pair{"names", &figure.names}, std::pair{"levels", &figure.levels}}) {
    if (texts->empty()) continue;
    Json all = Json::array();
    for (const std::string& text : *texts) all.push(text);
    to.set(key, all);
  }
  if (figure.front) to.set("front", true);
  to.set("series", lines);
  return to;
}

void read_figure(const Json& from, Result& result) {
  const auto text = [&](const char* name) { return from.at(name).text(); };
  result.figure = {.kind = text("kind"), .x = text("x"), .y = text("y"), .caption = text("caption")};
  for (const auto& [key, texts] : {std::pair{"names", &result.figure.names}, std::pair{"levels", &result.figure.levels}})
    if (const Json* all = from.find(key))
      for (const Json& one : all->items()) texts->push_back(one.text());
  result.figure.front = from.find("front") != nullptr;
  for (const Json& line : from.at("series").items()) {
    Result::Line& to = result.series.emplace_back(Result::Line{.name = line.at("name").text(), .points = {}});
    if (const Json* group = line.find("group")) to.group = group->text();
    for (const Json& point : line.at("points").items()) {
      const Json::Array& p = point.items();
      require(p.size() == 4, "results", "expected points of 4 numbers, got ", p.size());
      to.points.push_back({.x = p[0].number(), .y = interval_of(p[1], p[2], p[3], 0)});
    }
  }
}

Result read(const Json& from) {
  const Json* schema = from.find("schema");
  require(schema != nullptr, "results", "expected an object with a schema");
  require(schema->integer() == kSchema, "results", "expected schema ", kSchema, ", got ", schema->integer(),
          schema->integer() > kSchema ? ", which a newer version of the program wrote"
                                      : ", which an older version of the program wrote");
  const auto text = [&](const char* name) { return from.at(name).text(); };
  const auto text_or_none = [&](const char* name) { return from.find(name) == nullptr ? std::string() : text(name); };
  Result result{.id = text("id"), .source = text("source"), .statement = text("statement"), .quantity = text_or_none("quantity")};
  result.rule = text("rule"), result.reason = text_or_none("reason");
  result.decision = {verdict_named(text("verdict")), text("why")};
  for (const Json& m : from.at("measured").items())
    result.measured.push_back({.name = m.at("name").text(),
                               .unit = m.at("unit").text(),
                               .interval = interval_of(m.at("value"), m.at("low"), m.at("high"), m.at("n").integer())});
  for (const Json& p : from.at("published").items()) {
    Published published{.name = p.at("name").text(), .where = p.at("where").text()};
    if (!p.at("value").is_null()) published.value = p.at("value").number();
    result.published.push_back(std::move(published));
  }
  read_figure(from.at("figure"), result);
  result.mode = text("mode") == "full" ? Mode::full : Mode::quick;
  result.seeds = from.at("seeds").integer(), result.cells = from.at("cells").integer();
  result.command = text("command");
  result.machine = from.at("machine"), result.version = text("version");
  result.seconds = from.at("seconds").number();
  if (const Json* runs = from.find("runs"))
    for (const auto& [key, seconds] : runs->members()) result.runs.emplace(key, seconds.number());
  return result;
}
/// What a figure without series shows is of its kind, as is what has the name of a series; other quantities may be of any.
std::string usual_unit(const Result& result, const Claim& claim, const std::string& quantity) {
  if (quantity.starts_with("learning rate of ")) return std::string(kLearningRate);
  for (const auto& [start, unit] : claim.units)
    if (quantity.starts_with(start)) return unit;
  const bool shown =
      result.series.empty() || std::ranges::find(result.series, quantity, &Result::Line::name) != result.series.end();
  return shown ? result.figure.y : "";
}

/// The claim's words, but for the rule.
void tell(Result& result, const Claim& claim) {
  result.statement = claim.statement, result.quantity = claim.quantity;
  result.published = claim.published, result.figure = claim.figure;
  result.reason = claim.reason(result.decision.verdict);
  if (!result.reason.empty()) result.decision.why += "; " + result.reason;
  for (Result::Measured& m : result.measured)
    if (m.unit.empty()) m.unit = usual_unit(result, claim, m.name);
}
}  // namespace

Result result_of(const Claim& claim, const Evidence& found) {
  Result result{.id = claim.id, .source = claim.source(), .rule = claim.rule.text};
  result.decision = claim.rule.decide(found);
  for (const std::string& note : found.notes()) result.decision.why += "; " + note;
  for (const Quantity& q : found.quantities()) result.measured.push_back({q.name, q.unit, q.interval()});
  for (const Series& series : found.series()) {
    Result::Line& line = result.series.emplace_back(Result::Line{.name = series.name, .group = series.group, .points = {}});
    for (const Point& point : series.points) line.points.push_back({.x = point.x, .y = point.interval()});
  }
  tell(result, claim);
  return result;
}

Result retold(Result result, const Claim& claim) {
  if (result.rule != claim.rule.text)
    throw Error(result.id + ": decided by another rule than today's; run it again: isomer study " + result.id + " --" +
                std::string(name_of(result.mode)));
  const std::string end = "; " + result.reason;
  if (!result.reason.empty() && result.decision.why.ends_with(end))
    result.decision.why.resize(result.decision.why.size() - end.size());
  tell(result, claim);
  return result;
}

Json to_json(const Result& result) {
  Json measured = Json::array(), published = Json::array();
  for (const Result::Measured& m : result.measured) measured.push(to_json(m));
  for (const Published& p : result.published)
    published.push(Json::object({{"name", p.name}, {"value", p.value}, {"where", p.where}}));
  Json to = Json::object({{"schema", kSchema},
                          {"id", result.id},
                          {"source", result.source},
                          {"statement", result.statement},
                          {"quantity", result.quantity},
                          {"rule", result.rule},
                          {"verdict", name_of(result.decision.verdict)},
                          {"why", result.decision.why},
                          {"reason", result.reason},
                          {"measured", measured},
                          {"published", published},
                          {"figure", figure_json(result)},
                          {"mode", name_of(result.mode)},
                          {"seeds", result.seeds},
                          {"cells", result.cells},
                          {"command", result.command},
                          {"machine", result.machine},
                          {"version", result.version},
                          {"seconds", result.seconds}});
  if (result.runs.empty()) return to;
  Json runs = Json::object();
  for (const auto& [key, seconds] : result.runs) runs.set(key, seconds);
  to.set("runs", runs);
  return to;
}

Json to_json(const Claim& claim) {
  return Json::object({{"id", claim.id},
                       {"source", claim.source()},
                       {"statement", claim.statement},
                       {"quantity", claim.quantity},
                       {"rule", claim.rule.text},
                       {"trained", claim.trained()}});
}

Result parse_result(const std::string& text, const std::string& path) {
  const Json from = Json::parse(text, path);
  try {
    return read(from);
  } catch (const Error& problem) {
    throw Error(path + ": " + problem.what());
  }
}

std::map<std::string, double> seconds_by_source(const std::vector<Result>& results) {
  std::map<std::string, double> seconds;
  std::set<std::string> counted;
  for (const Result& result : results) {
    double& sum = seconds[result.source];
    if (result.runs.empty()) sum += result.seconds;
    for (const auto& [key, time] : result.runs)
      if (counted.insert(key).second) sum += time;
  }
  return seconds;
}

void write_result(const std::string& folder, const Result& result) {
  write_text((std::filesystem::path(folder) / (result.id + ".json")).string(), to_json(result).dump(1) + "\n");
}

ResultFiles read_result_files(const std::string& folder) {
  std::error_code problem;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  if (problem) throw Error("cannot read " + folder + ": " + problem.message());
  std::ranges::sort(paths);
  ResultFiles all;
  for (const std::string& path : paths) try {
      all.results.push_back(parse_result(read_text(path), path));
    } catch (const Error& wrong) {
      all.problems.emplace_back(wrong.what());
    }
  return all;
}

std::vector<Result> read_results(const std::string& folder) {
  ResultFiles all = read_result_files(folder);
  if (!all.problems.empty()) throw Error(all.problems.front());
  return std::move(all.results);
}

}  // namespace isomer::study
