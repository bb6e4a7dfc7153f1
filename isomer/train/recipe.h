#pragma once
// A recipe names model, task and training in one TOML file; this reads it, with overrides, and writes it resolved.
//
//   [model]
//   layers = ["mlstm", "sliding-window"]      # one mixer a layer; "gla*4" is four of them
//   [mixer.sliding-window]                    # options of a preset, as `isomer show` lists them; [mixer.all] is for every one
//   window = 128
//   [task]
//   name = "mqar"                             # and its options, as `isomer tasks` lists them
//   [train]
//   steps = 2000
//
// A key that nobody knows is an error "FILE:LINE: …" that names the nearest.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/io/toml.h"
#include "isomer/laws/law.h"

namespace isomer {

struct ModelRecipe {
  // The model of this folder, run or GGUF file, with its weights, its tokenizer and a head for the task; then only layers
  // (mixers in place of its own) and dropout may stand beside it. Empty: what the other keys say.
  std::string from;
  std::string kind = "auto";  // auto: what the task needs | language | classifier | encoder | vision | regression
  Index width = 128;
  std::vector<std::string> layers = {"softmax", "softmax"};
  Index repeat = 1;            // the list of layers, so many times
  std::string mlp = "swiglu";  // none | gelu | swiglu
  double mlp_factor = 0;       // hidden / width; 0: 4 for gelu, 8/3 for swiglu
  std::string norm = "rms";    // rms | layer
  bool tied = true;            // output projection = embedding
  double dropout = 0;          // of embeddings and residual branches
  double logit_cap = 0;        // c·tanh(x/c) on logits; 0: none
  // A learned vector for each position, added to the embedding: auto (patches have it) | true | false.
  std::string positions = "auto";
  double deviation = 0.02;  // of weights at the start, unless their mixer says otherwise
  double qk_identity = 0;   // such q and k start with so much of the unit matrix too: like tokens attend to each other
};

struct TrainRecipe {
  Index steps = 1000, batch = 32;
  Index accumulate = 1;  // parts of a batch that run one after the other, with the memory of one
  double lr = 1e-3;
  std::string optimiser = "adamw";  // adamw | sgd
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1, momentum = 0.9;
  std::string schedule = "cosine";  // constant | cosine | linear | wsd
  Index warmup = 0;
  double final_lr = 0;  // as a fraction of lr
  double clip = 1;      // of the global norm; 0: none
  std::uint64_t seed = 1;
  bool recompute = false;  // blocks run twice instead of keeping their activations
  // Stochastic window (SWAX): each batch draws the short window with this probability, until the last part of training.
  Index short_window = 0;
  double short_probability = 0.5, anneal = 0.1;
  // When to look, save and stop.
  Index log_every = 0, eval_every = 0, save_every = 0;  // 0: 200, 10 and 5 times a run
  double save_minutes = 5;                              // save at least so often, too; 0: only at steps
  Index eval_examples = 512, keep = 2;
  bool keep_best = false;  // the checkpoint of the best evaluation stays, as checkpoints/best
  std::string freeze;      // parts of names, "mixer.psi,mixer.features": such parameters stay as they start; empty: none
  std::string start;       // begin with the weights of this run or model, where they fit; empty: with random ones
  double stop_at = 0;      // stop once the metric of an evaluation reaches it; 0: never
  Index patience = 0;      // stop after so many evaluations in a row without a better one; 0: never
};

struct Recipe {
  ModelRecipe model;
  std::map<std::string, Settings> mixers;  // by preset; "all": for every one that knows the option
  std::string task;
  Settings task_settings;
  TrainRecipe train;
  std::string name;                  // of the file
  std::map<std::string, int> lines;  // of the keys, for messages
};

/// "a.b=c", as on the command line; keys of model and train also without their table: "lr=1e-3".
using Overrides = std::vector<std::string>;

/// Throws Error for an unreadable file, an unknown or misspelt key, and a value that does not fit.
[[nodiscard]] Recipe read_recipe(const std::string& path, const Overrides& overrides = {});
[[nodiscard]] Recipe parse_recipe(const TomlFile& file, const Overrides& overrides = {});

/// Every key of a recipe but the options of tasks and mixers: "model.width", "train.lr", …
[[nodiscard]] std::vector<std::string> recipe_keys();

/// The key of the recipe whose last part is `name`: "lr" is "train.lr". Any other name stays.
[[nodiscard]] std::string whole_key(const std::string& name);

/// ", did you mean …?" for a key that is none: an option of a task or a mixer of that name, else the nearest of `known` or of
/// their last parts.
[[nodiscard]] std::string key_hint(const std::string& key, const std::vector<std::string>& known);

/// The recipe with another task, or with other options of its own one: "task.KEY=VALUE". The options of the recipe stay unless
/// the task is another. Throws Error for an override of anything else.
[[nodiscard]] Recipe with_task(Recipe recipe, const std::string& task, const Overrides& options);

/// The layers, written out: repetitions in the list and of the list.
[[nodiscard]] std::vector<std::string> layers_of(const ModelRecipe& model);

/// A key whose values differ.
struct RecipeChange {
  std::string key, before, after;
};
[[nodiscard]] std::vector<RecipeChange> changes(const Recipe& before, const Recipe& after);
/// May the key change while a run trains? Those that say how long it trains, when it looks and saves, and where its data is.
[[nodiscard]] bool may_change(const std::string& key);

/// The whole recipe with every key of model and training filled in: reading it again gives the same recipe.
[[nodiscard]] std::string to_toml(const Recipe& recipe);

/// Throws the error again with the place of a key of these tables (mixer.X, task) or of these keys in front: the first one that
/// it names as a word, else an option of the task whose value it quotes, else the first line of the first table that has one.
[[noreturn]] void fail_in_recipe(const Recipe& recipe, const std::vector<std::string>& tables, const std::string& what);

}  // namespace isomer
