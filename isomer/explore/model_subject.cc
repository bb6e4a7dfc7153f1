#include "isomer/base/error.h"
#include "isomer/explore/subject.h"
#include "isomer/models/model_dsf.h"

namespace isomer {

namespace {
std::vector<std::int64_t> tokens_of(const LookedAt& model, std::string_view text) {
  std::vector<std::int64_t> tokens =
      model.tokenizer->encode_input(text).tokens;  // as the model was trained: with what begins a text
  require(!tokens.empty(), "text", "expected a token at least, got none");
  require(Index(tokens.size()) <= kLongestSystem, "text", "expected at most ", kLongestSystem, " tokens, got ", tokens.size());
  return tokens;
}

class ModelSubject : public Subject {
 public:
  ModelSubject(std::shared_ptr<const LookedAt> from, std::string_view text)
      : Subject(isomer::words_of(*from, text)), from_(std::move(from)), tokens_(tokens_of(*from_, text)) {}

  [[nodiscard]] Index layers() const override { return Index(from_->config.layers.size()); }
  [[nodiscard]] const Mixer<double>& mixer(Index layer) const override { return from_->model->block(layer).mixer(); }
  [[nodiscard]] const Parameters<double>& parameters() const override { return from_->parameters; }
  [[nodiscard]] std::string prefix(Index layer) const override { return "layers." + std::to_string(layer) + ".mixer."; }

  void at(Index layer, Tape<double>& tape, const Look& look) const override {
    const auto& model = *from_->model;
    model.visit_blocks(tape, input(tokens_), [&](Index here, Var<double> x, std::span<const Var<double>> taken) {
      if (here == layer) look(model.block(here).mixer_input(tape, x), taken);
    });
  }
  [[nodiscard]] std::vector<std::vector<LawCall>> calls(Context& context) const override {
    std::vector<std::vector<LawCall>> all(from_->config.layers.size());
    for (ModelLaw& law : laws_of(*from_->model, input(tokens_), context))
      all[std::size_t(law.layer)].push_back(std::move(law.call));
    return all;
  }
  [[nodiscard]] std::vector<double> outputs(const std::optional<Change>& change, Context& context) const override {
    std::vector<std::int64_t> tokens = tokens_;
    if (change) {
      const std::vector<std::int64_t> other = from_->tokenizer->encode(change->word);
      require(other.size() == 1, "other", "expected one token, got ", other.size());
      tokens[std::size_t(change->token)] = other[0];
    }
    Tape<double> tape(context, Record::no);
    const Var<double> hidden = from_->model->logits(tape, input(tokens)).hidden;
    return {hidden.value.data, hidden.value.data + hidden.value.size()};
  }
  [[nodiscard]] std::string another_word(Index token) const override {
    // The nearest number whose text reads back as one token.
    const Index vocabulary = from_->tokenizer->vocabulary();
    for (Index i = 1; i < vocabulary; ++i) {
      const std::int64_t other = (tokens_[std::size_t(token)] + i) % vocabulary;
      const std::string word = from_->tokenizer->decode({&other, 1});
      if (reads_back(word, other)) return word;
    }
    throw Error("text: expected a model with another token, got one of a single token");
  }

 private:
  [[nodiscard]] bool reads_back(const std::string& word, std::int64_t token) const {
    try {
      return from_->tokenizer->encode(word) == std::vector{token};
    } catch (const Error&) {
      return false;
    }
  }
  [[nodiscard]] ModelInput input(const std::vector<std::int64_t>& tokens) const {
    return {.B = 1, .T = Index(tokens.size()), .tokens = tokens};
  }
  std::shared_ptr<const LookedAt> from_;
  std::vector<std::int64_t> tokens_;
};
}  // namespace

std::shared_ptr<const LookedAt> load_to_look_at(const std::string& path) {
  std::unique_ptr<LoadedModel> loaded = load_model(path);
  if (!loaded->tokenizer) throw Error(path + ": expected a model of tokens, got one of vectors");
  auto model = std::make_shared<LookedAt>();
  model->name = path;
  model->config = loaded->model.config();
  model->model = std::make_unique<const Model<double>>(model->config, model->parameters);
  model->parameters.assign(loaded->parameters.tensors());
  model->tokenizer = std::move(loaded->tokenizer);
  return model;
}

std::vector<std::string> words_of(const LookedAt& model, std::string_view text) {
  std::vector<std::string> words;
  for (const std::int64_t token : tokens_of(model, text)) words.push_back(model.tokenizer->decode({&token, 1}));
  return words;
}

std::unique_ptr<const Subject> model_subject(std::shared_ptr<const LookedAt> model, std::string_view text) {
  return std::make_unique<ModelSubject>(std::move(model), text);
}

}  // namespace isomer
