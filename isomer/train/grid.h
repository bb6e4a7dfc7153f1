#pragma once
// A grid of recipes: every combination of values of some keys.
//
//   const std::vector<GridAxis> axes = parse_grid({"mixer=softmax,gla", "lr=1e-3,3e-3"});
//   const std::vector<GridPoint> points = grid_of(axes, "recipes/mqar.toml", {"train.steps=100"});  // 4 of them
//
// A key is one of the recipe's (train.lr, task.pairs, mixer.gla.heads), or its last part where that says enough (lr, seed,
// width). `mixer` stands for all layers: as many of that preset as the recipe has layers. In a list of layers '+' goes between
// them, since
// ',' goes between values: layers=gla+softmax,mlstm*2. Options of presets that a combination has no layer of are left out of it.
#include <string>
#include <utility>
#include <vector>

#include "isomer/io/table.h"
#include "isomer/tasks/task.h"
#include "isomer/train/recipe.h"

namespace isomer {

struct GridAxis {
  std::string name;  // as the user wrote it
  std::string key;   // of the recipe, or "mixer"
  std::vector<std::string> values;
};

/// A value of every axis, with its name.
using GridValues = std::vector<std::pair<std::string, std::string>>;
/// {"lr": 1e-3}: numbers where they are some.
[[nodiscard]] Json to_json(const GridValues& values);
[[nodiscard]] Cells cells_of(const GridValues& values);

struct GridPoint {
  std::string name;   // "mixer=gla,lr=1e-3", good as the name of a folder
  GridValues values;  // by axis
  Recipe recipe;
  Metric metric = Metric::token_accuracy;  // of its task
};

/// Each text is KEY=VALUE,VALUE,…; a piece with '=' begins the next axis. Throws Error for an unknown key, naming the nearest,
/// and for a key or a value that is there twice.
[[nodiscard]] std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts);

/// All combinations. The last axis changes fastest.
[[nodiscard]] std::vector<GridValues> combinations(const std::vector<GridAxis>& axes);

/// The combinations as recipes. Every recipe has been tried: a model can be made of it. Throws Error with the point's name.
[[nodiscard]] std::vector<GridPoint> grid_of(const std::vector<GridAxis>& axes, const std::string& recipe_path,
                                             const Overrides& overrides);

}  // namespace isomer
