#pragma once
// Running claims: cells side by side on the cores, finished ones kept, a result file for each claim as soon as it is decided.
//
//   const std::vector<const Claim*> claims = find_claims(names);
//   const std::vector<Outcome> all = run_study(claims, {.budget = {.mode = Mode::quick}, .folder = "results"}, progress);
//
// A study that was stopped or killed goes on where it was: cells that are kept are not run again. One process at a time writes a
// folder.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "isomer/study/claim.h"
#include "isomer/study/result.h"

namespace isomer::study {

struct StudyOptions {
  Budget budget = {};
  int jobs = 0;  // cells at a time; 0: one for each core
  std::string folder = "results";
  std::string command = "isomer study";  // of a result: this and the claim's id and mode
};

struct StudyProgress {
  std::size_t claims = 0, claims_done = 0;
  std::size_t cells = 0, cells_done = 0, cells_kept = 0;  // kept: from before
  double share = 0;                                       // of all work, cells under way counted in part
  double seconds = 0, seconds_left = 0;
  std::string_view last = {};  // the claim decided last
};
/// Called from one thread at a time; returns false to stop.
using OnProgress = std::function<bool(const StudyProgress&)>;

struct Outcome {
  const Claim* claim = nullptr;
  Result result = {};
  std::string failure = {};  // why it could not be run; empty: there is a result
};

/// In the order of the claims. Throws Error when the folder cannot be written, or another process writes it, and
/// std::runtime_error when a disk is full later on. A study that is stopped returns the claims that were decided.
[[nodiscard]] std::vector<Outcome> run_study(std::span<const Claim* const> claims, const StudyOptions& options,
                                             const OnProgress& progress = {});

}  // namespace isomer::study
