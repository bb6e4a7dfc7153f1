// isomer classify: which class a text is of, by a trained classifier.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/models/model_folder.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string model, lines;
  std::vector<std::string> texts;
  TableOutput output;
  int threads = 0;
};

struct Row {
  std::string text, label;
  double probability = 0;
};

Json to_json(const Row& row) {
  return Json::object({{"text", row.text}, {"label", row.label}, {"probability", row.probability}});
}
Cells cells_of(const Row& row) {
  return {{"label", row.label}, {"probability", formatted("%.3f", row.probability)}, {"text", row.text}};
}

std::vector<std::string> texts_of(const Request& request) {
  std::vector<std::string> texts = request.texts;
  if (!request.lines.empty()) std::ranges::move(read_lines(request.lines), std::back_inserter(texts));
  if (texts.empty()) throw Error("expected --text or --lines, got none");
  return texts;
}

Row classified(const LoadedModel& loaded, const std::string& text, Context& context) {
  const ModelConfig& config = loaded.model.config();
  std::vector<std::int64_t> tokens = loaded.tokenizer->encode_input(text).tokens;
  if (tokens.empty()) throw Error("--text: expected at least one token, got none");
  // As in training, where what is longer is cut off.
  if (config.length > 0 && Index(tokens.size()) > config.length) tokens.resize(std::size_t(config.length));
  Tape<float> tape(context, Record::no);
  const Var<float> logits = loaded.model.logits(tape, {.B = 1, .T = Index(tokens.size()), .tokens = tokens}).logits;
  const std::span<const float> all(logits.value.data, std::size_t(logits.value.size()));
  const auto best = std::ranges::max_element(all);
  double sum = 0;
  for (const float logit : all) sum += std::exp(double(logit - *best));
  const auto label = std::size_t(best - all.begin());
  return {text, config.labels.empty() ? std::to_string(label) : config.labels[label], 1 / sum};
}

int classify_request(const Request& request) {
  const auto loaded = load_model(request.model);
  const ModelKind kind = loaded->model.config().kind;
  if (!loaded->tokenizer || (kind != ModelKind::classifier && kind != ModelKind::encoder))
    throw Error(request.model + ": expected a classifier of texts, got a " + std::string(name_of(kind)));
  Context context(request.threads);
  std::vector<Row> rows;
  for (const std::string& text : texts_of(request)) rows.push_back(classified(*loaded, text, context));
  print_rows(context, rows, request.output);
  return kDone;
}
}  // namespace

Command classify_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("model", request->model, "Folder of a run or of a model").required();
  options.add("--text", request->texts, "What to classify; may be repeated").value("TEXT").repeated();
  options.add("--lines", request->lines, "A file with a text a line").value("FILE");
  options.table(request->output);
  options.threads(request->threads);
  options.footer("Example:\n  isomer classify runs/mail --text \"You have won\" --lines inbox.txt --csv");
  return [request] { return classify_request(*request); };
}

}  // namespace isomer::cli
