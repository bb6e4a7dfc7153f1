#pragma once
// What the tests of tasks share.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
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

/// An IDX file of n pictures of rows × columns; pixel i is i mod 251.
inline std::string idx_images(char n, char rows, char columns) {
  std::string bytes{'\0', '\0', '\x08', '\x03', 0, 0, 0, n, 0, 0, 0, rows, 0, 0, 0, columns};
  for (int i = 0; i < n * rows * columns; ++i) bytes += char(i % 251);
  return bytes;
}
inline std::string idx_labels(const std::string& labels) {
  return std::string{'\0', '\0', '\x08', '\x01', 0, 0, 0, char(labels.size())} + labels;
}

struct Pictures {
  char rows, columns;
  std::string train_labels, test_labels;
};
/// The four files of a set of pictures.
inline void write_pictures(const std::filesystem::path& folder, const Pictures& of) {
  for (const auto& [name, labels] : {std::pair{"train", of.train_labels}, {"t10k", of.test_labels}}) {
    std::ofstream(folder / (std::string(name) + "-images-idx3-ubyte")) << idx_images(char(labels.size()), of.rows, of.columns);
    std::ofstream(folder / (std::string(name) + "-labels-idx1-ubyte")) << idx_labels(labels);
  }
}

}  // namespace isomer
