#pragma once
// For tests of models of other libraries only: the tiny ones that tools/foreign-goldens made.
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "isomer/io/json.h"
#include "isomer/io/text.h"
#include "isomer/models/model_folder.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer::testing {

[[nodiscard]] inline std::filesystem::path goldens() {
  return std::filesystem::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign";
}

/// The largest difference over the largest number wanted, which is at least `least`.
[[nodiscard]] inline double distance(const Tensor& got, const Tensor& want, double least = 1e-30) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  double worst = 0, largest = least;
  for (Index i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(double(got.data<float>()[i]) - double(want.data<float>()[i])));
    largest = std::max(largest, std::abs(double(want.data<float>()[i])));
  }
  return worst / largest;
}

/// The folder of a golden with other texts in its config.
class Changed {
 public:
  Changed(const std::string& name, const std::vector<std::pair<std::string, std::string>>& changes) {
    std::filesystem::copy(goldens() / name, folder_.path,
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    const std::string path = (folder_.path / "config.json").string();
    Json config = Json::parse(read_text(path), path);
    for (const auto& [key, value] : changes) config.set(key, Json::parse(value, key));
    write_text(path, config.dump(1));
  }
  [[nodiscard]] std::string error() const {
    std::string text = tests::error_of([&] { (void)load_model(folder_.path.string()); });
    const std::string place = folder_.path.string() + "/";
    if (const std::size_t at = text.find(place); at != std::string::npos) text.erase(at, place.size());
    return text;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path; }

 private:
  tests::TemporaryFolder folder_;
};

}  // namespace isomer::testing
