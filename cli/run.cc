// isomer run: what a pre-trained model is for: a language model goes on, a masked one fills in, an encoder compares texts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/command.h"
#include "cli/generate.h"
#include "cli/report.h"
#include "isomer/base/error.h"

namespace isomer::cli {

namespace {
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

/// The vector of a text, of length one.
std::vector<float> embedded(const LoadedModel& loaded, const std::string& text, Context& context) {
  TokenizerInput in = loaded.tokenizer->encode_input(text);
  const Index length = loaded.model.config().length;
  if (length > 0 && Index(in.tokens.size()) > length) in.tokens.resize(std::size_t(length)), in.types.resize(std::size_t(length));
  Tape<float> tape(context, Record::no);
  const Var<float> y = loaded.model.logits(tape, {.B = 1, .T = Index(in.tokens.size()), .tokens = in.tokens}).logits;
  return {y.value.data, y.value.data + y.value.size()};
}

/// The cosine of the first text and each of the others.
std::vector<Row> compared(const LoadedModel& loaded, const std::vector<std::string>& texts, Context& context) {
  if (texts.size() < 2) throw Error("--prompt: expected two texts or more to compare, got " + std::to_string(texts.size()));
  const std::vector<float> first = embedded(loaded, texts[0], context);
  std::vector<Row> rows;
  for (std::size_t i = 1; i < texts.size(); ++i) {
    const std::vector<float> other = embedded(loaded, texts[i], context);
    rows.push_back({texts[0], texts[i], std::inner_product(first.begin(), first.end(), other.begin(), 0.0)});
  }
  return rows;
}

int run_request(const GenerateRequest& request, Index count) {
  const auto loaded = load(request);
  const ModelKind kind = loaded->model.config().kind;
  if (kind == ModelKind::language) return generate(*loaded, request);
  if ((kind != ModelKind::masked && kind != ModelKind::embedding) || !loaded->tokenizer)
    throw Error(request.model + ": expected a language model, a masked one or an encoder of texts, got a " +
                std::string(name_of(kind)) + "; isomer classify and isomer logits run others");
  if (request.prompts.empty()) throw Error("expected --prompt, got none");
  Context context(request.threads);
  std::vector<Row> rows;
  if (kind == ModelKind::embedding) {
    rows = compared(*loaded, request.prompts, context);
  } else {
    for (const std::string& prompt : request.prompts)
      std::ranges::move(filled(*loaded, prompt, count, context), std::back_inserter(rows));
  }
  const bool fills = kind == ModelKind::masked;
  if (request.json) {
    Json all = Json::array();
    for (const Row& row : rows)
      all.push(Json::object(
          {{"text", row.text}, {fills ? "word" : "other", row.word}, {fills ? "probability" : "cosine", row.value}}));
    print_json(context, all);
    return kDone;
  }
  Table table({fills ? "probability" : "cosine", fills ? "word" : "beside " + rows.front().text});
  for (const Row& row : rows) table.add({formatted("%.4f", row.value), row.word});
  table.print();
  return kDone;
}
}  // namespace

Command run_command(Options& options) {
  auto request = std::make_shared<GenerateRequest>();
  auto count = std::make_shared<Index>(5);
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
  options.add("--words", *count, "Masked models: how many words to show [5]").value("N").at_least(1);
  add_generate_options(options, *request);
  options.footer(
      "Example:\n  isomer run stories15m --prompt \"Once upon a time\" --temperature 0\n"
      "  isomer run bert-base --prompt \"Hello I'm a [MASK] model.\"\n"
      "  isomer run minilm --prompt \"a cat\" --prompt \"a small tiger\" --prompt \"a lorry\"\n"
      "  isomer run SmolLM2.gguf --chat --prompt \"What is the capital of France?\"");
  return [request, count] { return run_request(*request, *count); };
}

}  // namespace isomer::cli
