#pragma once
// What the page of the study shows: the results of a folder beside those that are kept.
//
//   StudyFiles files = read_study("results", "study/results");
//   write_text("report.html", page_of(to_json(files)));
#include <string>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/study/result.h"

namespace isomer {

struct StudyFiles {
  std::vector<study::Result> results, kept;
  Json mixers = Json::array();        // what mixer_data.h gives, for whoever reads the page without the program
  std::vector<std::string> problems;  // "PATH: why", of each file that is no result: it is left out, and the page says so
};

/// Either folder may be empty text: then there are none of these. Throws Error when one cannot be read.
[[nodiscard]] StudyFiles read_study(const std::string& folder, const std::string& kept);

[[nodiscard]] Json to_json(const StudyFiles& files);

}  // namespace isomer
