// isomer tokenizer: learns one from a text; text to tokens and back.
#include <iterator>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/corpus.h"
#include "isomer/io/files.h"
#include "isomer/io/text.h"
#include "isomer/models/byte_pairs.h"
#include "isomer/models/model_files.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string action, file, field, tokenizer, output;
  BytePairOptions options;
};

constexpr Index kAnyVocabulary = Index(1) << 40;

/// Of a file, or of the folder of a run or a model, or of a checkpoint.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  if (path.empty()) throw Error("expected --tokenizer tokenizer.json or the folder of a model, got none");
  const std::string file = is_folder(run_path(path).run) ? find_model(path) + "/tokenizer.json" : path;
  return tokenizer_from(read_text(file), file, kAnyVocabulary);
}

std::string input_of(const Request& request) {
  if (request.file.empty() || request.file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_text(request.file);
}

int train(const Request& request) {
  if (request.file.empty()) throw Error("expected a text to learn from, got none");
  if (request.output.empty()) throw Error("expected --output tokenizer.json, got none");
  const Stopwatch watch;
  const std::vector<std::string> documents = read_documents(request.file, request.field);
  const auto tokenizer = train_byte_pairs(documents, request.options);
  try {
    write_text(request.output, tokenizer->to_json());
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
  double bytes = 0;
  for (const std::string& document : documents) bytes += double(document.size());
  std::cout << tokenizer->vocabulary() << " tokens from " << documents.size() << " documents, " << bytes_text(bytes) << ", in "
            << formatted("%.1f", watch.seconds()) << " s\n";
  return kDone;
}

int encode(const Request& request) {
  const auto tokenizer = read_tokenizer(request.tokenizer);
  std::string line;
  for (const std::int64_t token : tokenizer->encode(input_of(request))) line += std::to_string(token) + " ";
  if (!line.empty()) line.back() = '\n';
  std::cout << line;
  return kDone;
}

int decode(const Request& request) {
  const auto tokenizer = read_tokenizer(request.tokenizer);
  std::cout << tokenizer->decode(number_tokenizer(tokenizer->vocabulary())->encode(input_of(request)));
  return kDone;
}

int tokenizer_request(const Request& request) {
  if (request.action == "train") return train(request);
  return request.action == "encode" ? encode(request) : decode(request);
}
}  // namespace

Command tokenizer_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("ACTION", request->action, "train, encode or decode").required().one_of({"train", "encode", "decode"});
  options.add("FILE", request->file,
              "train: a text, a folder of texts, or records (.jsonl, .csv, .tsv); encode, decode: what to read; - or none: "
              "standard input");
  options.add("--vocabulary", request->options.vocabulary, "train: tokens, with the 256 bytes [8000]").value("N").at_least(256);
  options
      .add("--special", request->options.special, "train: a token that stands for itself, such as <|endoftext|>; may be repeated")
      .value("TEXT")
      .repeated();
  options.add("--field", request->field, "train: the field of the records that is text").value("NAME");
  options.add("--output", request->output, "train: where tokenizer.json goes").value("FILE");
  options.add("--tokenizer", request->tokenizer, "encode, decode: a tokenizer.json, or the folder of a run or of a model")
      .value("PATH");
  options.footer(
      "Byte-level byte pairs with the pattern of GPT-2, in the tokenizer.json of Hugging Face.\n"
      "\nExample:\n  isomer tokenizer train book.txt --vocabulary 4096 --output tokenizer.json\n"
      "  echo \"The end\" | isomer tokenizer encode --tokenizer tokenizer.json");
  return [request] { return tokenizer_request(*request); };
}

}  // namespace isomer::cli
