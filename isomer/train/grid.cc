#include "isomer/train/grid.h"

#include <algorithm>
#include <map>
#include <set>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/base/settings.h"
#include "isomer/mixers/preset.h"
#include "isomer/train/session.h"

namespace isomer {

namespace {
// More than anybody waits for; a slip of the keyboard should not start a million runs.
constexpr std::size_t kMostPoints = 10000;

/// The key that a name stands for.
std::string key_named(const std::string& name) {
  std::vector<std::string> known = recipe_keys();
  const std::string key = whole_key(name);
  // Options of tasks and mixers are checked by them.
  if (name == "mixer" || name.starts_with("task.") || name.starts_with("mixer.") || std::ranges::find(known, key) != known.end())
    return key;
  known.emplace_back("mixer");
  fail("--grid", "unknown key ", name, key_hint(name, known));
}

void add_piece(std::vector<GridAxis>& axes, std::string piece) {
  if (const std::size_t equals = piece.find('='); equals != std::string::npos) {
    const std::string name = piece.substr(0, equals), key = key_named(name);
    for (const GridAxis& axis : axes) require(axis.key != key, "--grid", "expected each key once, got ", key, " twice");
    axes.push_back({name, key, {}});
    piece.erase(0, equals + 1);
  }
  std::vector<std::string>& values = axes.back().values;
  require(!piece.empty(), "--grid", "expected a value of ", axes.back().name, ", got none");
  require(std::ranges::find(values, piece) == values.end(), "--grid", "expected each value of ", axes.back().name, " once, got ",
          piece, " twice");
  values.push_back(piece);
}

/// What a folder may be called without quotes in a shell.
std::string file_name(std::string text) {
  for (char& c : text) {
    if (c == '*') c = 'x';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && std::string_view("=,.+-_").find(c) == std::string_view::npos) c = '_';
  }
  return text;
}

void set_mixer(Recipe& recipe, const std::string& preset) {
  (void)find_preset(preset);
  const std::size_t count = layers_of(recipe.model).size();
  recipe.model.layers = {recipe.model.from.empty() ? preset + "*" + std::to_string(count) : preset};
  recipe.model.repeat = 1;
  recipe.lines["model.layers"] = 0;
  forget_options_of_other_layers(recipe);
}

/// Options of presets that are there, but not in this model. Misspelt ones stay, to be complained about.
void drop_unused_options(Recipe& recipe) {
  const std::vector<std::string> layers = layers_of(recipe.model);
  for (const Preset* preset : presets())
    if (std::ranges::find(layers, preset->name) == layers.end()) recipe.mixers.erase(std::string(preset->name));
}

/// Options for all layers that none of this point has, but one of another point; the others stay, to be complained about.
void drop_options_of_other_points(std::vector<GridPoint>& points) {
  std::map<std::string, std::size_t> unused;
  for (const GridPoint& point : points)
    for (const std::string& option : unused_shared_options(point.recipe)) ++unused[option];
  for (GridPoint& point : points)
    for (const std::string& option : unused_shared_options(point.recipe))
      if (unused.at(option) < points.size()) point.recipe.mixers["all"].erase(option);
}

Recipe recipe_at(const std::vector<GridAxis>& axes, const GridPoint& point, const std::string& path, Overrides overrides) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].key == "mixer") continue;
    std::string value = point.values[i].second;
    if (axes[i].key == "model.layers") std::ranges::replace(value, '+', ',');
    overrides.push_back(axes[i].key + "=" + value);
  }
  Recipe recipe = read_recipe(path, overrides);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].key == "mixer") set_mixer(recipe, point.values[i].second);
  drop_unused_options(recipe);
  return recipe;
}

/// Errors of the work have the point's name in front.
template <class Work>
void in_point(const GridPoint& point, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(point.name + ": " + error.what());
  }
}

/// A value of the grid: a number where it is one.
Json value_of(const std::string& text) {
  const std::optional<Json> number = Json::try_parse(text);
  return number && number->is_number() ? *number : Json(text);
}

/// Shapes of tasks: making one may mean to read a file, and most points have the same.
class Shapes {
 public:
  const TaskShape& of(const Recipe& recipe) {
    const auto key = std::pair(recipe.task, recipe.task_settings);
    auto found = shapes_.find(key);
    if (found == shapes_.end()) found = shapes_.emplace(key, task_of(recipe)->shape()).first;
    return found->second;
  }

 private:
  std::map<std::pair<std::string, Settings>, TaskShape> shapes_;
};
}  // namespace

std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts) {
  std::vector<GridAxis> axes;
  for (const std::string& text : texts) {
    require(text.find('=') < text.find(','), "--grid", "expected KEY=VALUE,VALUE,…, got ", text);
    for (const std::string& piece : split(text, ',')) add_piece(axes, piece);
  }
  require(!axes.empty(), "--grid", "expected at least one KEY=VALUE,VALUE,…, got none");
  return axes;
}

std::vector<GridValues> combinations(const std::vector<GridAxis>& axes) {
  std::size_t count = 1;
  for (const GridAxis& axis : axes) {
    count *= axis.values.size();
    require(count <= kMostPoints, "--grid", "expected at most ", kMostPoints, " combinations, got more");
  }
  std::vector<GridValues> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i, slow = count;
    for (const GridAxis& axis : axes) {
      slow /= axis.values.size();
      all[i].emplace_back(axis.name, axis.values[rest / slow]);
      rest %= slow;
    }
  }
  return all;
}

Json to_json(const GridValues& values) {
  Json set = Json::object();
  for (const auto& [axis, value] : values) set.set(axis, value_of(value));
  return set;
}

Cells cells_of(const GridValues& values) {
  Cells cells;
  for (const auto& [axis, text] : values) {
    const Json value = value_of(text);
    cells.push_back({axis, value.is_string() ? text : value.is_integer() ? value.dump() : text_of(value.number())});
  }
  return cells;
}

std::vector<GridPoint> grid_of(const std::vector<GridAxis>& axes, const std::string& recipe_path, const Overrides& overrides) {
  std::vector<GridPoint> points;
  Shapes shapes;
  std::set<std::string> names;
  for (const GridValues& values : combinations(axes)) {
    GridPoint& point = points.emplace_back(GridPoint{.name = {}, .values = values, .recipe = {}});
    for (const auto& [axis, value] : values) {
      if (!point.name.empty()) point.name += ",";
      point.name += file_name(axis + "=" + value);
    }
    require(names.insert(point.name).second, "--grid", "expected values that differ in letters and digits, got ", point.name,
            " twice");
    in_point(point, [&] { point.recipe = recipe_at(axes, point, recipe_path, overrides); });
  }
  drop_options_of_other_points(points);
  for (GridPoint& point : points)
    in_point(point, [&] {
      const TaskShape& shape = shapes.of(point.recipe);
      point.metric = shape.metric;
      (void)model_of(point.recipe, shape);
    });
  return points;
}

}  // namespace isomer
