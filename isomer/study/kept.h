#pragma once
// Finished cells on the disk: DIR/cells/KEY.json. What is there is never run again, and what is written is whole.
#include <optional>
#include <string>

#include "isomer/study/cell.h"

namespace isomer::study {

class KeptCells {
 public:
  /// Makes the folder if it is not there. Throws Error when it cannot.
  explicit KeptCells(const std::string& folder);
  /// Nothing when the cell was not run yet. A file that is damaged counts as none: the cell is run again.
  [[nodiscard]] std::optional<CellResult> find(const std::string& key) const;
  void keep(const CellResult& result) const;

 private:
  [[nodiscard]] std::string path(const std::string& key) const;
  std::string folder_;
};

[[nodiscard]] std::string to_json(const CellResult& result);
/// Throws Error for what is not one.
[[nodiscard]] CellResult parse_cell(const std::string& text);

}  // namespace isomer::study
