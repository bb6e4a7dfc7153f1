#include "isomer/train/recipe.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/base/suggest.h"
#include "isomer/io/files.h"
#include "isomer/mixers/preset.h"
#include "isomer/tasks/task.h"
#include "isomer/train/recipe_keys.h"
#include "isomer/train/recipe_model.h"

namespace isomer {

namespace {
constexpr Index kMostRecipeLayers = 1000;

std::string place(const Recipe& recipe, const std::string& key) {
  const auto found = recipe.lines.find(key);
  if (found == recipe.lines.end()) return recipe.name + ": ";
  return found->second == 0 ? "--set: " : recipe.name + ":" + std::to_string(found->second) + ": ";
}

/// Takes values from the file's entries.
class EntryReader : public Binder {
 public:
  EntryReader(const Recipe& recipe, const std::vector<TomlEntry>& entries) : recipe_(recipe) {
    for (const TomlEntry& entry : entries) entries_[entry.key] = &entry;
  }

  void number(const char* key, double& value, double least, double most) override {
    const std::string* text = find(key);
    if (text == nullptr) return;
    if (parse_number(*text, value) && std::isfinite(value) && value >= least && value <= most) return;
    if (most < 1e300) wrong(key, "a number from " + toml_number(least) + " to " + toml_number(most), *text);
    wrong(key, "a finite number of at least " + toml_number(least), *text);
  }
  void size(const char* key, Index& value, Index least) override {
    const std::string* text = find(key);
    const bool right = text == nullptr || (parse_number(*text, value) && value >= least);
    if (!right) wrong(key, "a whole number of at least " + std::to_string(least), *text);
  }
  void flag(const char* key, bool& value) override {
    const std::string* text = find(key);
    if (text == nullptr) return;
    if (*text != "true" && *text != "false") wrong(key, "true or false", *text);
    value = *text == "true";
  }
  void choice(const char* key, std::string& value, const std::vector<std::string>& choices) override {
    const std::string* text = find(key);
    if (text == nullptr) return;
    value = *text;
    if (std::ranges::find(choices, value) != choices.end()) return;
    std::string all;
    for (const std::string& c : choices) all += (all.empty() ? "" : ", ") + c;
    wrong(key, "one of " + all, value + did_you_mean(value, choices));
  }
  void text(const char* key, std::string& value) override {
    if (const std::string* text = find(key)) value = *text;
  }
  void list(const char* key, std::vector<std::string>& value) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    const TomlEntry& entry = *found->second;
    value = entry.is_array ? entry.items : split(entry.text, ',');  // --set model.layers=gla,softmax
    if (value.empty()) wrong(key, "at least one name", "none");
  }

 private:
  const std::string* find(const char* key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    if (found->second->is_array) wrong(key, "one value", "a list");
    return &found->second->text;
  }
  [[noreturn]] void wrong(const char* key, const std::string& expected, const std::string& got) const {
    throw Error(place(recipe_, key) + "expected " + expected + " for " + key + ", got " + got);
  }

  const Recipe& recipe_;
  std::map<std::string, const TomlEntry*> entries_;
};

class Writer : public Binder {
 public:
  void number(const char* key, double& value, double, double) override { line(key, toml_number(value)); }
  void size(const char* key, Index& value, Index) override { line(key, std::to_string(value)); }
  void flag(const char* key, bool& value) override { line(key, value ? "true" : "false"); }
  void choice(const char* key, std::string& value, const std::vector<std::string>&) override { line(key, toml_value(value)); }
  void text(const char* key, std::string& value) override {
    // Results of studies are kept under a hash of this text: that of recipes that do not have the key stays as it was.
    if (value.empty() && std::string_view(key) == "model.from") return;
    line(key, toml_quoted(value));
  }
  void list(const char* key, std::vector<std::string>& value) override {
    if (value.empty()) return;
    std::string text = "[";
    for (const std::string& item : value) text += (text.size() == 1 ? "" : ", ") + toml_quoted(item);
    line(key, text + "]");
  }
  void table(const std::string& name, const Settings& settings) {
    if (settings.empty()) return;
    text_ += "\n[" + name + "]\n";
    for (const auto& [key, value] : settings) text_ += key + " = " + toml_value(value) + "\n";
  }
  void line(const std::string& key, const std::string& value) {
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != table_) {
      table_ = key.substr(0, dot);
      text_ += (text_.empty() ? "[" : "\n[") + table_ + "]\n";
    }
    text_ += key.substr(dot + 1) + " = " + value + "\n";
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string table_, text_;
};

/// Every key with its value, as a text.
class Values : public Binder {
 public:
  explicit Values(Recipe recipe) {
    bind(recipe, *this);
    all["task.name"] = recipe.task;
    for (const auto& [option, value] : recipe.task_settings) all["task." + option] = value;
    for (const auto& [preset, settings] : recipe.mixers)
      for (const auto& [option, value] : settings) all["mixer." + preset + "." + option] = value;
  }
  void number(const char* key, double& value, double, double) override { all[key] = toml_number(value); }
  void size(const char* key, Index& value, Index) override { all[key] = std::to_string(value); }
  void flag(const char* key, bool& value) override { all[key] = value ? "true" : "false"; }
  void choice(const char* key, std::string& value, const std::vector<std::string>&) override { all[key] = value; }
  void text(const char* key, std::string& value) override { all[key] = value; }
  void list(const char* key, std::vector<std::string>& value) override {
    for (const std::string& item : value) all[key] += (all[key].empty() ? "" : ",") + item;
  }
  std::map<std::string, std::string> all;
};

TomlEntry override_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  require(equals != std::string::npos && equals > 0, "--set", "expected key=value, got ", text);
  return {.key = whole_key(text.substr(0, equals)), .text = text.substr(equals + 1), .line = 0};
}

/// A run that --set makes shorter than its warm-up warms up for the same share of it.
void shorten_warmup(Recipe& recipe, const TomlFile& file) {
  TrainRecipe& train = recipe.train;
  const auto overridden = [&](const char* key) { return recipe.lines.contains(key) && recipe.lines.at(key) == 0; };
  if (!overridden("train.steps") || overridden("train.warmup") || train.warmup <= train.steps) return;
  Index before = TrainRecipe{}.steps;
  for (const TomlEntry& entry : file.entries)
    if (entry.key == "train.steps" && !parse_number(entry.text, before)) return;
  if (train.warmup <= before) train.warmup = train.warmup * train.steps / before;
}

/// Where a text has the word, not as a part of another; npos: nowhere.
std::size_t word_in(std::string_view text, std::string_view word) {
  const auto inner = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto apart = [&](std::size_t i) { return i >= text.size() || !inner(text[i]); };
  std::size_t at = text.find(word);
  while (at != std::string_view::npos && !(apart(at - 1) && apart(at + word.size()))) at = text.find(word, at + 1);
  return at;
}

/// mixer.PRESET.option and task.option belong to others, who check them.
bool belongs_to_others(Recipe& recipe, const TomlEntry& entry) {
  const auto text = [&] {
    if (entry.is_array) fail_in_recipe(recipe, {entry.key}, "expected one value, got a list");
    return entry.text;
  };
  if (entry.key == "task.name") {
    recipe.task = text();
  } else if (entry.key.starts_with("task.")) {
    recipe.task_settings[entry.key.substr(5)] = text();
  } else if (entry.key.starts_with("mixer.")) {
    const std::size_t dot = entry.key.find('.', 6);
    if (dot == std::string::npos)
      fail_in_recipe(recipe, {entry.key}, "expected [mixer.PRESET] or [mixer.all] with options, got " + entry.key);
    recipe.mixers[entry.key.substr(6, dot - 6)][entry.key.substr(dot + 1)] = text();
  } else {
    return false;
  }
  return true;
}

/// A model that is there already has sizes of its own.
void expect_own_model(const Recipe& recipe, const std::vector<TomlEntry>& entries) {
  constexpr std::array<std::string_view, 3> kFree{"model.from", "model.layers", "model.dropout"};
  for (const TomlEntry& entry : entries)
    if (entry.key.starts_with("model.") && std::ranges::find(kFree, entry.key) == kFree.end())
      throw Error(place(recipe, entry.key) + "expected only layers and dropout beside model.from, got " + entry.key);
}
}  // namespace

void fail_in_recipe(const Recipe& recipe, const std::vector<std::string>& tables, const std::string& what) {
  // Named, then quoted, then by table and line; what --set says has no line.
  using Rank = std::array<std::size_t, 3>;
  std::string best;
  Rank least{3};
  for (std::size_t i = 0; i < tables.size(); ++i)
    for (const auto& [key, line] : recipe.lines) {
      if (key != tables[i] && !key.starts_with(tables[i] + ".")) continue;
      const std::string option = key.substr(key.rfind('.') + 1);
      const auto task = tables[i] == "task" ? recipe.task_settings.find(option) : recipe.task_settings.end();
      const std::string value = task == recipe.task_settings.end() ? "" : task->second;
      Rank rank{2, i, line > 0 ? std::size_t(line) : std::string::npos};
      if (value.size() > 2 && what.find(value) != std::string::npos) rank = {1, what.size() - value.size()};
      if (const std::size_t at = word_in(what, option); at != std::string::npos) rank = {0, at};
      if (rank < least) least = rank, best = key;
    }
  throw Error(place(recipe, best) + what);
}

Recipe parse_recipe(const TomlFile& file, const Overrides& overrides) {
  Recipe recipe;
  recipe.name = file.name;
  std::vector<TomlEntry> entries = file.entries;
  for (const std::string& text : overrides) entries.push_back(override_of(text));
  for (const TomlEntry& entry : entries) recipe.lines[entry.key] = entry.line;
  std::erase_if(entries, [&](const TomlEntry& entry) { return belongs_to_others(recipe, entry); });
  for (const TomlEntry& entry : entries)
    if (entry.key == "model.from" && !entry.text.empty()) recipe.model.layers.clear();  // its own
  EntryReader reader(recipe, entries);
  bind(recipe, reader);
  if (std::string& from = recipe.model.from; !from.empty()) from = whole_path(from);
  // The run that begins with it may be resumed from anywhere.
  if (std::string& start = recipe.train.start; !start.empty()) start = whole_path(start);
  for (auto& [option, value] : recipe.task_settings)
    if (is_path(option) && !value.empty()) value = whole_path(value);
  const std::vector<std::string> known = recipe_keys();
  for (const TomlEntry& entry : entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw Error(place(recipe, entry.key) + "unknown key " + entry.key + key_hint(entry.key, known));
  if (!recipe.model.from.empty()) expect_own_model(recipe, entries);
  if (recipe.task.empty()) throw Error(recipe.name + ": expected task.name, got none");
  (void)layers_of(recipe.model);
  shorten_warmup(recipe, file);
  forget_options_of_other_layers(recipe);
  use_own_tokenizer(recipe);
  return recipe;
}

std::vector<std::string> recipe_keys() {
  std::vector<std::string> keys;
  for (const auto& [key, value] : Values(Recipe{}).all) keys.push_back(key);
  return keys;
}

std::string whole_key(const std::string& name) {
  for (const std::string& key : recipe_keys())
    if (key.ends_with("." + name)) return key;
  return name;
}

std::string key_hint(const std::string& key, const std::vector<std::string>& known) {
  const auto among = [&](const auto& options) {
    return std::ranges::any_of(options, [&](const auto& option) { return option.name == key; });
  };
  for (const TaskType* task : tasks())
    if (among(options_of(*task))) return ", did you mean task." + key + "?";
  for (const Preset* preset : presets())
    if (among(options_of(*preset, {}))) return ", did you mean mixer.all." + key + "?";
  std::vector<std::string> names = known;  // also without their tables
  for (const std::string& whole : known) names.push_back(whole.substr(whole.rfind('.') + 1));
  return did_you_mean(key, names);
}

Recipe with_task(Recipe recipe, const std::string& task, const Overrides& options) {
  if (task != recipe.task) {
    recipe.task_settings.clear();
    std::erase_if(recipe.lines, [](const auto& line) { return line.first.starts_with("task."); });
  }
  recipe.task = task;
  for (const std::string& text : options) {
    const TomlEntry entry = override_of(text);
    require(entry.key.starts_with("task.") && entry.key != "task.name", "--set",
            "expected an option of the task (task.pairs=16), got ", text);
    recipe.lines[entry.key] = entry.line;
    (void)belongs_to_others(recipe, entry);
  }
  use_own_tokenizer(recipe);
  return recipe;
}

Recipe read_recipe(const std::string& path, const Overrides& overrides) {
  namespace fs = std::filesystem;
  // `train mqar` means recipes/mqar.toml, where it is there.
  const std::string whole = (fs::path("recipes") / fs::path(path).stem()).string() + ".toml";
  if (!is_there(path) && is_there(whole)) throw Error("cannot read " + path + ": no such file, did you mean " + whole + "?");
  return parse_recipe(read_toml(path), overrides);
}

std::vector<std::string> layers_of(const ModelRecipe& model) {
  std::vector<std::string> once, all;
  for (const std::string& item : model.layers) {
    const std::size_t star = item.find('*');
    Index times = 1;
    if (star != std::string::npos)
      require(parse_number(std::string_view(item).substr(star + 1), times) && times >= 1 && times <= kMostRecipeLayers,
              "model.layers", "expected PRESET or PRESET*N with N from 1 to ", kMostRecipeLayers, ", got ", item);
    once.insert(once.end(), std::size_t(times), item.substr(0, star));
  }
  require(Index(once.size()) <= kMostRecipeLayers / model.repeat, "model.layers", "expected at most ", kMostRecipeLayers,
          " layers, got ", once.size(), " times ", model.repeat);
  for (Index i = 0; i < model.repeat; ++i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

std::vector<RecipeChange> changes(const Recipe& before, const Recipe& after) {
  const std::map<std::string, std::string> old = Values(before).all, next = Values(after).all;
  std::vector<RecipeChange> all;
  for (const auto& [key, value] : old)
    if (const auto found = next.find(key); found == next.end() || found->second != value)
      all.push_back({key, value, found == next.end() ? "nothing" : found->second});
  for (const auto& [key, value] : next)
    if (!old.contains(key)) all.push_back({key, "nothing", value});
  return all;
}

bool may_change(const std::string& key) {
  constexpr std::array<std::string_view, 10> kFree{
      "train.patience",     "train.steps",         "train.log_every", "train.eval_every", "train.save_every",
      "train.save_minutes", "train.eval_examples", "train.keep",      "train.keep_best",  "train.stop_at"};
  return std::ranges::find(kFree, key) != kFree.end() || (key.starts_with("task.") && is_path(key.substr(5)));
}

std::string to_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  Writer writer;
  bind(copy, writer);
  Settings task = recipe.task_settings;
  task["name"] = recipe.task;
  writer.table("task", task);
  for (const auto& [preset, settings] : recipe.mixers) writer.table("mixer." + preset, settings);
  return writer.text();
}

}  // namespace isomer
