#pragma once
// What is looked at: layers of mixers on the tokens of a text. Of a preset, one layer as it starts; of a model, its own layers.
//
//   const std::unique_ptr<const Subject> gla = fresh_subject({.preset = "gla", .words = words_of("the cat sat on the mat")});
//   const std::vector<std::vector<LawCall>> calls = gla->calls(context);  // of each layer; nn/mixer_dsf.h
//
//   const std::unique_ptr<const Subject> run = model_subject(load_to_look_at("runs/text"), "The end");
//
// A word of a fresh mixer is a random vector that depends on the word alone, so that the same word is the same token for every
// mixer. Weights are those that a layer starts with, but for queries and keys, which start near the input itself (like words
// attend to each other), and an output that starts at zero. A subject never changes: several threads may look at one.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/settings.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/model_folder.h"

namespace isomer {

class Subject {
 public:
  virtual ~Subject() = default;

  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] Index T() const { return Index(words_.size()); }
  [[nodiscard]] virtual Index layers() const = 0;
  [[nodiscard]] virtual const Mixer<double>& mixer(Index layer) const = 0;
  [[nodiscard]] virtual const Parameters<double>& parameters() const = 0;
  /// How the names of the layer's parameters start.
  [[nodiscard]] virtual std::string prefix(Index layer) const = 0;
  /// What may be set, with what it is: of a preset.
  [[nodiscard]] virtual std::vector<MixerOption> options() const { return {}; }

  /// Calls look(x, taken) with what the mixer of the layer is given.
  using Look = std::function<void(Var<double> x, std::span<const Var<double>> taken)>;
  virtual void at(Index layer, Tape<double>& tape, const Look& look) const = 0;
  /// Of every layer.
  [[nodiscard]] virtual std::vector<std::vector<LawCall>> calls(Context& context) const = 0;

  /// Another word in the place of one.
  struct Change {
    Index token = 0;
    std::string word;
  };
  /// [T, n]: what comes out at the end. Throws Error for a word that the model does not know.
  [[nodiscard]] virtual std::vector<double> outputs(const std::optional<Change>& change, Context& context) const = 0;
  /// A word that is not the one of the token, for who has no other in mind.
  [[nodiscard]] virtual std::string another_word(Index token) const = 0;

 protected:
  explicit Subject(std::vector<std::string> words) : words_(std::move(words)) {}

 private:
  std::vector<std::string> words_;
};

/// How far each output moves when a word is another one, over the mean size of outputs: [T].
[[nodiscard]] std::vector<double> influence(const Subject& subject, const Subject::Change& change, Context& context);

struct FreshQuestion {
  std::string preset;
  Settings settings = {};
  std::vector<std::string> words = {};
  Index width = 128;
};
/// Throws Error for no words or too many, a mixer that is too large to look at, and what build_mixer refuses.
[[nodiscard]] std::unique_ptr<const Subject> fresh_subject(const FreshQuestion& question);

/// A trained model to look at: in double, with what reads its text.
struct LookedAt {
  std::string name;
  ModelConfig config;
  Parameters<double> parameters;
  std::unique_ptr<const Model<double>> model;
  std::unique_ptr<const Tokenizer> tokenizer;
};
/// Throws Error as load_model() does, and for a model of vectors.
[[nodiscard]] std::shared_ptr<const LookedAt> load_to_look_at(const std::string& path);
/// The tokens of a text as words. Throws Error for a text that has none, or too many.
[[nodiscard]] std::vector<std::string> words_of(const LookedAt& model, std::string_view text);
[[nodiscard]] std::unique_ptr<const Subject> model_subject(std::shared_ptr<const LookedAt> model, std::string_view text);

/// What stands between spaces.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

}  // namespace isomer
