#include "isomer/models/text_pairs.h"

#include <algorithm>
#include <cmath>
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
}  // namespace

std::vector<float> embedding_of(const LoadedModel& loaded, const std::string& text, Context& context) {
  const ModelConfig& config = loaded.model.config();
  if (config.kind != ModelKind::embedding || !loaded.tokenizer)
    throw Error("expected an encoder of texts, got a " + std::string(name_of(config.kind)));
  std::vector<std::int64_t> tokens = loaded.tokenizer->encode_input(text).tokens;
  if (tokens.empty()) throw Error("expected a text with at least one token, got none");
  if (config.length > 0 && Index(tokens.size()) > config.length) tokens.resize(std::size_t(config.length));
  Tape<float> tape(context, Record::no);
  const Var<float> y = loaded.model.logits(tape, {.B = 1, .T = Index(tokens.size()), .tokens = tokens}).logits;
  return {y.value.data, y.value.data + y.value.size()};
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

PairScores score_pairs(const LoadedModel& loaded, const std::vector<TextPair>& pairs, const std::string& prefix,
                       Context& context) {
  std::vector<double> wanted, got;
  for (const TextPair& pair : pairs) {
    wanted.push_back(pair.score);
    got.push_back(
        cosine(embedding_of(loaded, prefix + pair.first, context), embedding_of(loaded, prefix + pair.second, context)));
  }
  return {Index(pairs.size()), pearson(wanted, got), spearman(wanted, got)};
}

}  // namespace isomer
