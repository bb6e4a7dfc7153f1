#pragma once
// What the tests of tasks share.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/tasks/task.h"
#include "tests/error_of.h"

namespace isomer {

/// Examples of a task, one batch each, as a test of statistics wants them.
template <class Look>
void each_example(const Task& task, Split split, std::uint64_t count, Look look) {
  Batch batch;
  for (std::uint64_t i = 0; i < count; ++i) {
    task.fill(split, i, 1, batch);
    look(batch);
  }
}

inline std::string error_of(std::string_view task, const Settings& settings) {
  return tests::error_of([&] { (void)make_task(task, settings); });
}

/// A share that was seen `times` in `trials` lies within five standard errors of `expected`.
inline void expect_share(double times, double trials, double expected, const std::string& what = "") {
  EXPECT_NEAR(times / trials, expected, 5 * std::sqrt(expected * (1 - expected) / trials)) << what;
}

}  // namespace isomer
