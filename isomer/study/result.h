#pragma once
// What the study found about a claim, as files keep it: one JSON object, schema 1, with every number that a figure needs.
//
//   write_result("results", result);                        // results/inline.confusion.json, whole or not at all
//   const std::vector<Result> kept = read_results("study/results");
#include <map>
#include <string>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/study/claim.h"

namespace isomer::study {

inline constexpr int kSchema = 1;

struct Result {
  std::string id = {}, source = {}, statement = {}, quantity = {}, rule = {};
  Decision decision = {};
  std::string reason = {};  // the claim's, where it does not hold: the end of why
  struct Measured {
    std::string name, unit;
    Interval interval;
  };
  std::vector<Measured> measured = {};
  std::vector<Published> published = {};
  Figure figure = {};
  struct Line {
    std::string name, group = {};
    struct Dot {
      double x = 0;
      Interval y;
    };
    std::vector<Dot> points;
  };
  std::vector<Line> series = {};
  Mode mode = Mode::quick;
  Index seeds = 0, cells = 0;
  std::map<std::string, double> runs = {};  // each cell's key and processor time: which runs claims share
  std::string command = {};
  Json machine = Json::object();  // where it was made
  std::string version = {};
  double seconds = 0;
};

/// The claim's rule applied to what was found.
[[nodiscard]] Result result_of(const Claim& claim, const Evidence& found);

/// The result with the claim's words of today: statement, quantity, reason, what was published, units, and the words of the
/// figure. Numbers, rule and verdict stay. Throws Error for a result that was decided by another rule: it has to be run again.
[[nodiscard]] Result retold(Result result, const Claim& claim);

[[nodiscard]] Json to_json(const Result& result);
/// {"id", "source", "statement", "quantity", "rule", "trained"}
[[nodiscard]] Json to_json(const Claim& claim);
/// Throws Error "PATH: …" for what is not JSON, not a result, or of another schema.
[[nodiscard]] Result parse_result(const std::string& text, const std::string& path);

/// Seconds of processor time that the claims of each source took together. A run that several of them share counts once; all time
/// of a result that names no runs counts.
[[nodiscard]] std::map<std::string, double> seconds_by_source(const std::vector<Result>& results);

void write_result(const std::string& folder, const Result& result);
/// All results of a folder, by id. Throws Error as parse_result does, or when there is no such folder.
[[nodiscard]] std::vector<Result> read_results(const std::string& folder);

/// The same, where a file that is no result is a problem beside the others.
struct ResultFiles {
  std::vector<Result> results = {};
  std::vector<std::string> problems = {};  // what parse_result throws
};
[[nodiscard]] ResultFiles read_result_files(const std::string& folder);

}  // namespace isomer::study
