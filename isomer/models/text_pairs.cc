#include "isomer/models/text_pairs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "isomer/base/correlation.h"
#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1)
    columns.push_back(line.substr(begin, (end = line.find('\t', begin)) - begin));
  return columns;
}

const Tokenizer& tokenizer_of(const LoadedModel& loaded) {
  if (!loaded.tokenizer) throw Error("expected an encoder of texts, got a model without a tokenizer");
  return *loaded.tokenizer;
}
}  // namespace

std::vector<std::vector<float>> embeddings_of(const Model<float>& model, const Tokenizer& tokenizer,
                                              std::span<const std::string> texts, Context& context, Index most) {
  const ModelConfig& config = model.config();
  if (config.kind != ModelKind::embedding)
    throw Error("expected an encoder of texts, got a " + std::string(name_of(config.kind)));
  if (config.length > 0) most = most > 0 ? std::min(most, config.length) : config.length;
  std::map<std::size_t, std::vector<std::size_t>> of_length;
  std::vector<std::vector<std::int64_t>> tokens;
  for (const std::string& text : texts) {
    const auto& own = tokens.emplace_back(input_of(tokenizer, text, most > 0 ? std::size_t(most) : std::string::npos));
    if (own.empty()) throw Error("expected a text with at least one token, got none");
    of_length[own.size()].push_back(tokens.size() - 1);
  }
  constexpr std::size_t kTogether = 32;
  std::vector<std::vector<float>> vectors(texts.size());
  Tape<float> tape(context, Record::no);
  for (const auto& [length, all] : of_length)
    for (std::size_t first = 0; first < all.size(); first += kTogether) {
      const std::span<const std::size_t> some = std::span(all).subspan(first, std::min(kTogether, all.size() - first));
      std::vector<std::int64_t> batch;
      for (const std::size_t i : some) batch.insert(batch.end(), tokens[i].begin(), tokens[i].end());
      tape.clear();
      const Var<float> y = model.logits(tape, {.B = std::ssize(some), .T = Index(length), .tokens = batch}).logits;
      const Index width = y.value.size() / std::ssize(some);
      for (std::size_t i = 0; i < some.size(); ++i)
        vectors[some[i]].assign(y.value.data + Index(i) * width, y.value.data + Index(i + 1) * width);
    }
  return vectors;
}

std::vector<float> embedding_of(const LoadedModel& loaded, const std::string& text, Context& context) {
  return embeddings_of(loaded.model, tokenizer_of(loaded), {&text, 1}, context, loaded.most_tokens)[0];
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<TextPair> read_pairs(const std::string& path, const std::array<Index, 3>& columns) {
  std::vector<TextPair> pairs;
  Index number = 0;
  for (const std::string& line : read_lines(path)) {
    const std::string place = path + ":" + std::to_string(++number) + ": ";
    const std::vector<std::string> all = columns_of(line);
    if (const Index most = *std::ranges::max_element(columns); most > Index(all.size()))
      throw Error(place + "expected " + std::to_string(most) + " columns between tabs, got " + std::to_string(all.size()));
    const auto column = [&](std::size_t i) { return all[std::size_t(columns[i] - 1)]; };
    TextPair& pair = pairs.emplace_back(TextPair{0, column(1), column(2)});
    if (!parse_number(column(0), pair.score) || !std::isfinite(pair.score))
      throw Error(place + "expected a number in column " + std::to_string(columns[0]) + ", got " + column(0));
  }
  if (pairs.size() < 2) throw Error(path + ": expected two pairs or more, got " + std::to_string(pairs.size()));
  return pairs;
}

PairScores score_pairs(const Model<float>& model, const Tokenizer& tokenizer, std::span<const TextPair> pairs,
                       const std::string& prefix, Context& context, Index most) {
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs) texts.insert(texts.end(), {prefix + pair.first, prefix + pair.second});
  const std::vector<std::vector<float>> vectors = embeddings_of(model, tokenizer, texts, context, most);
  std::vector<double> wanted, got;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    wanted.push_back(pairs[i].score);
    got.push_back(cosine(vectors[2 * i], vectors[2 * i + 1]));
  }
  return {Index(pairs.size()), pearson(wanted, got), spearman(wanted, got)};
}

PairScores score_pairs(const LoadedModel& loaded, std::span<const TextPair> pairs, const std::string& prefix, Context& context) {
  return score_pairs(loaded.model, tokenizer_of(loaded), pairs, prefix, context, loaded.most_tokens);
}

}  // namespace isomer
