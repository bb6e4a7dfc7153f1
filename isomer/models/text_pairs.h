#pragma once
// Pairs of texts and how alike people found them: what encoders of texts are measured by (STS-B).
#include <array>
#include <span>
#include <string>
#include <vector>

#include "isomer/models/model_folder.h"

namespace isomer {

/// The vectors of texts, of length one; texts of a length run together. Of a text that is longer than the model's longest
/// sequence, or than `most` tokens, the last are left out. Throws Error unless the model is an encoder of texts.
[[nodiscard]] std::vector<std::vector<float>> embeddings_of(const Model<float>& model, const Tokenizer& tokenizer,
                                                            std::span<const std::string> texts, Context& context, Index most = 0);
/// That of one.
[[nodiscard]] std::vector<float> embedding_of(const LoadedModel& loaded, const std::string& text, Context& context);
/// The cosine of two of them.
[[nodiscard]] double cosine(const std::vector<float>& a, const std::vector<float>& b);

struct TextPair {
  double score = 0;
  std::string first, second;
};

/// A pair a line, columns between tabs; those of score and texts are counted from 1. Throws Error "FILE:LINE: …".
[[nodiscard]] std::vector<TextPair> read_pairs(const std::string& path, const std::array<Index, 3>& columns);

/// How the cosines of pairs go with their scores.
struct PairScores {
  Index pairs = 0;
  double pearson = 0, spearman = 0;
};
/// `prefix` stands in front of every text, where a model was taught so.
[[nodiscard]] PairScores score_pairs(const Model<float>& model, const Tokenizer& tokenizer, std::span<const TextPair> pairs,
                                     const std::string& prefix, Context& context, Index most = 0);
[[nodiscard]] PairScores score_pairs(const LoadedModel& loaded, std::span<const TextPair> pairs, const std::string& prefix,
                                     Context& context);

}  // namespace isomer
