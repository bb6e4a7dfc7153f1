#pragma once
// What turns text into the tokens of a model and back. A model folder says in tokenizer.json which one it is and what that has
// learned; without the file tokens are numbers.
//
//   const std::string file = "tokenizer.json";
//   const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from(read_text(file), file, config.vocabulary);
//   const std::vector<std::int64_t> tokens = tokenizer->encode("The ");
//   std::cout << tokenizer->decode(tokens);
//
// A new kind is a class in tokenizer.cc or beside it, and a line in tokenizer_from(); those of Hugging Face are in tokenizers/.
// Tokenizers are values that do not change: several threads may use one.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"

namespace isomer {

/// What a model is given: tokens and beside each its type, which is that of the text it comes from.
struct TokenizerInput {
  std::vector<std::int64_t> tokens = {}, types = {};
};

class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// As tokenizer.json has it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Tokens are below it.
  [[nodiscard]] virtual Index vocabulary() const = 0;
  /// Is it running text, which reads on behind its prompt, and not a list of words?
  [[nodiscard]] virtual bool is_text() const = 0;
  /// Throws Error "expected …, got …" for what has no tokens.
  [[nodiscard]] virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
  /// With the special tokens that the model expects around a text, or around two.
  [[nodiscard]] virtual TokenizerInput encode_input(std::string_view text) const;
  [[nodiscard]] virtual TokenizerInput encode_pair(std::string_view first, std::string_view second) const;
  [[nodiscard]] virtual std::string decode(std::span<const std::int64_t> tokens) const = 0;
  /// Of tokens that follow others: decode() of the first ones and this of the next, piece by piece, are the whole text.
  [[nodiscard]] virtual std::string decode_next(std::span<const std::int64_t> tokens) const { return decode(tokens); }
  /// The token that a vocabulary writes so: [MASK], ##ing. Nothing: there is none, or pieces have no texts.
  [[nodiscard]] virtual std::optional<std::int64_t> token_of(std::string_view piece) const;
  /// The text of tokenizer.json; empty: no such file is needed.
  [[nodiscard]] virtual std::string to_json() const = 0;
};

/// The tokens of a whole text with the special ones around it. Of more than `most` the text's last are left out.
[[nodiscard]] std::vector<std::int64_t> input_of(const Tokenizer& tokenizer, std::string_view text, std::size_t most);

/// A token a byte.
[[nodiscard]] std::unique_ptr<Tokenizer> byte_tokenizer();
/// Numbers separated by spaces.
[[nodiscard]] std::unique_ptr<Tokenizer> number_tokenizer(Index vocabulary);
/// Words separated by spaces, one a token. Throws Error if one is empty, has a space in it or is there twice.
[[nodiscard]] std::unique_ptr<Tokenizer> word_tokenizer(std::vector<std::string> words);

/// The tokens with a part to play, which every family calls something else.
enum class SpecialToken : unsigned char { begin, end, mask, pad, unknown };
/// By the names that are in use, such as <s>, [CLS] and <|begin_of_text|>; nothing: it has none of them.
[[nodiscard]] std::optional<std::int64_t> find_special(const Tokenizer& tokenizer, SpecialToken token);

/// What to_json() wrote, or the tokenizer.json of Hugging Face (tokenizers/hugging_face.h); an empty text stands for numbers.
/// Throws Error "NAME: …" for what is not one of ours, is of a newer version, or has more tokens than `vocabulary`.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_from(std::string_view json, const std::string& name, Index vocabulary);

}  // namespace isomer
