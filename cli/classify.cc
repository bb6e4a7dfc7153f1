// isomer classify: which class a text is of, by a trained classifier, or a row of a table, by the rows whose class is known.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/io/text.h"
#include "isomer/models/prompt.h"
#include "isomer/models/table_rows.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string model, lines, table, rows, label = "label";
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
  // As in training, where what is longer is cut.
  const std::vector<std::int64_t> tokens =
      input_of(*loaded.tokenizer, text, config.length > 0 ? std::size_t(config.length) : std::string::npos);
  if (tokens.empty()) throw Error("--text: expected at least one token, got none");
  Tape<float> tape(context, Record::no);
  const Var<float> logits = loaded.model.logits(tape, {.B = 1, .T = Index(tokens.size()), .tokens = tokens}).logits;
  const std::span<const float> all(logits.value.data, std::size_t(logits.value.size()));
  const auto label = std::size_t(likeliest(all));
  return {text, config.labels.empty() ? std::to_string(label) : config.labels[label], probability_of(Index(label), all)};
}

/// A row of a table.
struct TableRow {
  Index row = 0;
  RowClass found;
  std::string truth;  // empty: nobody knows
};

Json to_json(const TableRow& row) {
  Json json = Json::object({{"row", row.row}, {"label", row.found.label}, {"probability", row.found.probability}});
  if (!row.truth.empty()) json.set("is", row.truth);
  return json;
}
Cells cells_of(const TableRow& row) {
  Cells cells{
      {"row", std::to_string(row.row)}, {"label", row.found.label}, {"probability", formatted("%.3f", row.found.probability)}};
  if (!row.truth.empty()) cells.push_back({"is", row.truth});
  return cells;
}

/// Rows of one file that have no label, or those of another.
int classify_table(const LoadedModel& loaded, const Request& request) {
  TableRows all = read_table(request.table, request.label);
  TableRows known{.columns = all.columns}, asked{.columns = all.columns};
  std::vector<Index> numbers;
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    TableRows& to = all.labels[i].empty() ? asked : known;
    if (all.labels[i].empty()) numbers.push_back(Index(i) + 1);
    to.rows.push_back(std::move(all.rows[i]));
    to.labels.push_back(std::move(all.labels[i]));
  }
  if (!request.rows.empty()) {
    asked = read_table(request.rows, request.label, known.columns);
    numbers.resize(asked.rows.size());
    std::iota(numbers.begin(), numbers.end(), Index(1));
  }
  if (asked.rows.empty()) throw Error("--table: expected rows without a " + request.label + ", or --rows, got none");
  if (known.rows.empty()) throw Error("--table: expected rows with a " + request.label + ", got none");
  Context context(request.threads);
  const std::vector<RowClass> found = classify_rows(loaded.model, known, asked, context);
  std::vector<TableRow> rows;
  Index right = 0, judged = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    rows.push_back({numbers[i], found[i], asked.labels[i]});
    if (asked.labels[i].empty()) continue;
    ++judged;
    if (found[i].label == asked.labels[i]) ++right;
  }
  std::string text = table_text(rows);
  if (judged > 0)
    text += "accuracy " + formatted("%.4f", double(right) / double(judged)) + " (" + std::to_string(right) + " of " +
            std::to_string(judged) + ")\n";
  print_rows(context, rows_json(rows), request.output, text);
  return kDone;
}

int classify_request(const Request& request) {
  const auto loaded = load_model(request.model);
  const ModelKind kind = loaded->model.config().kind;
  if (kind == ModelKind::table && request.table.empty()) throw Error("expected --table, got none");
  if (kind != ModelKind::table && !request.table.empty())
    throw Error(request.model + ": expected a model of tables for --table, got a " + std::string(name_of(kind)));
  if (kind == ModelKind::table && !(request.texts.empty() && request.lines.empty()))
    throw Error("expected --text and --lines for a model of texts, got them for one of tables");
  if (kind == ModelKind::table) return classify_table(*loaded, request);
  if (!request.rows.empty()) throw Error("--rows: expected it beside --table, got it alone");
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
  options.add("--table", request->table, "Rows of numbers (.csv, .tsv, .jsonl), with a class where it is known").value("FILE");
  options.add("--rows", request->rows, "Rows to classify, in place of those of the table without a class").value("FILE");
  options.add("--label", request->label, "The column of the class").value("NAME");
  options.table(request->output);
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer classify runs/mail --text \"You have won\" --lines inbox.txt --csv\n"
      "  isomer classify tabpfn --table known.csv --label species --rows asked.csv");
  return [request] { return classify_request(*request); };
}

}  // namespace isomer::cli
