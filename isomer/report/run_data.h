#pragma once
// What the page of runs shows: a summary of each run, and its curves.
//
//   const std::vector<std::string> runs{"runs/a", "runs/b"};
//   write_text("report.html", page_of(run_data(runs).data));
#include <span>
#include <string>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/train/metrics.h"

namespace isomer {

struct RunData {
  Json data;
  std::vector<std::string> problems = {};  // "PATH: why", of runs whose metrics cannot be read
};
[[nodiscard]] RunData run_data(std::span<const std::string> runs);

/// At most `most` lines of a long run: of each part of it those with the least and the largest loss, so that no spike is lost.
[[nodiscard]] std::vector<StepLine> thinned(std::span<const StepLine> lines, std::size_t most);

}  // namespace isomer
