// isomer run: what a pre-trained model is for: a language model goes on, a masked one fills in, an encoder compares texts.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cli/command.h"
#include "cli/generate.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/models/text_pairs.h"

namespace isomer::cli {

namespace {
struct Request {
  GenerateRequest generate;
  Index words = 5;
  std::string pairs, columns = "1,2,3", prefix;
};

struct Row {
  std::string text, word;
  double value = 0;
};

/// What a masked model would put in place of the first mask of a text, the likeliest first.
std::vector<Row> filled(const LoadedModel& loaded, const std::string& text, Index count, Context& context) {
  const auto mask = find_special(*loaded.tokenizer, SpecialToken::mask);
  if (!mask) throw Error("expected a tokenizer with a mask, got one without");
  const TokenizerInput in = loaded.tokenizer->encode_input(text);
  const auto at = std::ranges::find(in.tokens, *mask);
  if (at == in.tokens.end())
    throw Error("--prompt: expected a text with " + loaded.tokenizer->decode({&*mask, 1}) + " in it, got " + text);
  Tape<float> tape(context, Record::no);
  const ModelInput input{.B = 1,
                         .T = Index(in.tokens.size()),
                         .tokens = in.tokens,
                         .types = loaded.model.config().types > 0 ? std::span(in.types) : std::span<const std::int64_t>()};
  const Var<float> logits = loaded.model.logits(tape, input).logits;
  const Index V = logits.dim(3);
  const std::span<const float> row(logits.value.data + (at - in.tokens.begin()) * V, std::size_t(V));
  const float largest = *std::ranges::max_element(row);
  double sum = 0;
  for (const float x : row) sum += std::exp(double(x - largest));
  std::vector<std::int64_t> order(std::size_t(V), 0);
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, V);
  std::ranges::partial_sort(order, order.begin() + count, std::greater<>(), [&](std::int64_t i) { return row[std::size_t(i)]; });
  std::vector<Row> rows;
  for (Index i = 0; i < count; ++i)
    rows.push_back({text, loaded.tokenizer->decode({&order[std::size_t(i)], 1}),
                    std::exp(double(row[std::size_t(order[std::size_t(i)])] - largest)) / sum});
  return rows;
}

/// The cosine of the first text and each of the others.
std::vector<Row> compared(const LoadedModel& loaded, const std::vector<std::string>& texts, Context& context) {
  if (texts.size() < 2) throw Error("--prompt: expected two texts or more to compare, got " + std::to_string(texts.size()));
  const std::vector<float> first = embedding_of(loaded, texts[0], context);
  std::vector<Row> rows;
  for (std::size_t i = 1; i < texts.size(); ++i)
    rows.push_back({texts[0], texts[i], cosine(first, embedding_of(loaded, texts[i], context))});
  return rows;
}

std::array<Index, 3> columns_of(const std::string& text) {
  const std::vector<std::string> numbers = split(text, ',');
  std::array<Index, 3> columns{};
  bool good = numbers.size() == columns.size();
  for (std::size_t i = 0; good && i < columns.size(); ++i) good = parse_number(numbers[i], columns[i]) && columns[i] >= 1;
  if (!good) throw Error("--columns: expected three numbers from 1 on (score, text, text) as 5,6,7, got " + text);
  return columns;
}

int print_scores(const LoadedModel& loaded, const Request& request, Context& context) {
  if (loaded.model.config().kind != ModelKind::embedding || !loaded.tokenizer)
    throw Error("--pairs: expected an encoder of texts, got a " + std::string(name_of(loaded.model.config().kind)));
  const std::vector<TextPair> pairs = read_pairs(request.pairs, columns_of(request.columns));
  const PairScores scores = score_pairs(loaded, pairs, request.prefix, context);
  if (request.generate.json) {
    Json rows = Json::array();
    rows.push(Json::object({{"model", request.generate.model},
                            {"pairs", scores.pairs},
                            {"pearson", scores.pearson},
                            {"spearman", scores.spearman}}));
    print_json(context, rows);
    return kDone;
  }
  Table table({"pairs", "pearson", "spearman"});
  table.add({std::to_string(scores.pairs), formatted("%.4f", scores.pearson), formatted("%.4f", scores.spearman)});
  table.print();
  return kDone;
}

int run_request(const Request& all) {
  const GenerateRequest& request = all.generate;
  const auto loaded = load(request);
  const ModelKind kind = loaded->model.config().kind;
  Context context(request.threads);
  if (!all.pairs.empty()) return print_scores(*loaded, all, context);
  if (kind == ModelKind::language) return generate(*loaded, request);
  if ((kind != ModelKind::masked && kind != ModelKind::embedding) || !loaded->tokenizer)
    throw Error(request.model + ": expected a language model, a masked one or an encoder of texts, got a " +
                std::string(name_of(kind)) + "; isomer classify and isomer logits run others");
  if (request.prompts.empty()) throw Error("expected --prompt, got none");
  std::vector<Row> rows;
  if (kind == ModelKind::embedding) {
    rows = compared(*loaded, request.prompts, context);
  } else {
    for (const std::string& prompt : request.prompts)
      std::ranges::move(filled(*loaded, prompt, all.words, context), std::back_inserter(rows));
  }
  const bool fills = kind == ModelKind::masked;
  if (request.json) {
    Json found = Json::array();
    for (const Row& row : rows)
      found.push(Json::object(
          {{"text", row.text}, {fills ? "word" : "other", row.word}, {fills ? "probability" : "cosine", row.value}}));
    print_json(context, found);
    return kDone;
  }
  Table table({fills ? "probability" : "cosine", fills ? "word" : "beside " + rows.front().text});
  for (const Row& row : rows) table.add({formatted("%.4f", row.value), row.word});
  table.print();
  return kDone;
}
}  // namespace

Command run_command(Options& options) {
  auto all = std::make_shared<Request>();
  GenerateRequest* request = &all->generate;
  options.add("model", request->model, "Folder of a model of ours or of Hugging Face, a run, or a GGUF file").required();
  options
      .add("--prompt", request->prompts,
           "Text to go on from; with [MASK] for a masked model to fill in; several for an encoder to compare with the first")
      .value("TEXT")
      .repeated();
  options.flag("--chat", request->chat, "Prompts are what a user says to a model that was taught conversations");
  options.flag("--interactive", request->interactive,
               "A line in, its continuation out, until the end of standard input (Ctrl-D)");
  options.add("--tokens", request->tokens, "How many to generate at most [200]").value("N").at_least(0);
  options.add("--words", all->words, "Masked models: how many words to show [5]").value("N").at_least(1);
  options.add("--pairs", all->pairs, "Encoders: a file of pairs between tabs; how cosines go with their scores").value("FILE");
  options.add("--columns", all->columns, "--pairs: where score and texts stand in a line [1,2,3]").value("A,B,C");
  options.add("--prefix", all->prefix, "--pairs: in front of every text, as e5 has \"query: \"").value("TEXT");
  add_generate_options(options, *request);
  options.footer(
      "Example:\n  isomer run stories15m --prompt \"Once upon a time\" --temperature 0\n"
      "  isomer run bert-base --prompt \"Hello I'm a [MASK] model.\"\n"
      "  isomer run minilm --prompt \"a cat\" --prompt \"a small tiger\" --prompt \"a lorry\"\n"
      "  isomer run minilm --pairs sts-test.csv --columns 5,6,7\n"
      "  isomer run SmolLM2.gguf --chat --prompt \"What is the capital of France?\"");
  return [all] { return run_request(*all); };
}

}  // namespace isomer::cli
