// The bytes or tokens of a file, of a folder, or of a field of records: what the next one is, or which file they are from.
#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/io/bytes.h"
#include "isomer/io/corpus.h"
#include "isomer/io/files.h"
#include "isomer/tasks/list.h"
#include "isomer/tasks/own_text.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
// Installed by `tools/setup text` from Debian's package jargon-text; public domain.
constexpr std::string_view kDefault = "/usr/share/doc/jargon-text/jargon.txt.gz";

constexpr std::array<OptionSpec, 8> kOptions{{
    {"path", kDefault, "a file, or a folder whose files are read in the order of their names; gzip is unpacked"},
    {"field", "", "of records (.jsonl, .csv, .tsv): the one that is the text; records are dealt to the splits by the seed"},
    {"separator", "\\n", "behind every record; \\n is the end of a line"},
    {"tokenizer", "", "a tokenizer.json, or a model that has one; without, tokens are bytes"},
    {"length", "256", "tokens of an example"},
    {"test_share", "0.05", "share of the text that is kept for the test, at the end, or of the records"},
    {"validation_share", "0", "share that is kept for evaluations during training, before that of the test"},
    {"label", "next", "next: the token that follows; file: which of a folder's files the bytes are from, without links"},
}};

constexpr std::array kSplits{Split::train, Split::validation, Split::test};
using Texts = std::array<std::string, kSplits.size()>;

/// The end of the text is the test, what stands before it the validation.
Texts cut(std::string whole, const own_text::Shares& shares) {
  const auto tests = std::size_t(shares.test * double(whole.size()));
  const auto validations = std::size_t(shares.validation * double(whole.size()));
  Texts texts;
  texts[std::size_t(Split::test)] = whole.substr(whole.size() - tests);
  whole.resize(whole.size() - tests);
  texts[std::size_t(Split::validation)] = whole.substr(whole.size() - validations);
  whole.resize(whole.size() - validations);
  texts[std::size_t(Split::train)] = std::move(whole);
  return texts;
}

/// The option can be read on one line.
std::string separator_of(const TaskOptions& options) {
  std::string text;
  for (const char c : options.text("separator")) {
    const bool escaped = c == 'n' && text.ends_with('\\');
    if (escaped) text.pop_back();
    text += escaped ? '\n' : c;
  }
  return text;
}

Texts read_texts(const TaskOptions& options, std::uint64_t seed) {
  const std::string &path = options.text("path"), &field = options.text("field");
  const own_text::Shares shares(options);
  if (path == kDefault && !is_there(path))
    throw Error("text: expected " + path + " of Debian's package jargon-text (tools/setup text installs it), got no such file");
  std::vector<std::string> documents = read_documents(path, field);
  if (field.empty()) {
    for (std::size_t i = 1; i < documents.size(); ++i) documents[0] += std::exchange(documents[i], {});
    return cut(std::move(documents[0]), shares);
  }
  const std::vector<Split> splits = own_text::deal(documents.size(), shares, seed);
  const std::string separator = separator_of(options);
  Texts texts;
  for (std::size_t i = 0; i < documents.size(); ++i) texts[std::size_t(splits[i])].append(documents[i]).append(separator);
  return texts;
}

class Text final : public Task {
 public:
  explicit Text(const TaskOptions& options)
      : Task(options), length_(std::size_t(options.size("length", 1, 1 << 24))), tokenizer_(own_text::tokenizer_of(options)) {
    bytes_ = tokenizer_->name() == "bytes";
    Texts texts = read_texts(options, seed());
    for (const std::string& text : texts) data_hash_ = hash_of(text, data_hash_ ^ kHashStart);
    if (!bytes_) data_hash_ = hash_of(tokenizer_->to_json(), data_hash_ ^ kHashStart);
    for (const Split split : kSplits) add(split, std::move(texts[std::size_t(split)]));
    has_validation_ = options.number("validation_share", 0, 1) > 0;
    const auto expect_more = [&](Split split, const char* what) {
      const std::size_t count = parts_[std::size_t(split)].size;
      // An example has one token more than its inputs, the last label.
      require(count > length_, "text", "expected more than ", length_, bytes_ ? " bytes " : " tokens ", what, ", got ", count);
      std::uint64_t& size = sizes_[std::size_t(split)];
      const std::uint64_t windows = (count - 1) / length_;
      if (split != Split::train) size = size == 0 ? windows : std::min(size, windows);
    };
    expect_more(Split::train, "to train on");
    expect_more(Split::test, "for the test");
    if (has_validation_) expect_more(Split::validation, "for the validation");
    const Index vocabulary = tokenizer_->vocabulary();
    shape_ = {.metric = Metric::bits_per_token,
              .length = Index(length_),
              .vocabulary = vocabulary,
              .classes = vocabulary,
              .bytes = bytes_};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return own_text::spelled(*tokenizer_, token); }
  [[nodiscard]] std::string tokenizer() const override { return bytes_ ? "" : tokenizer_->to_json(); }

 private:
  struct Part {
    std::string text;                  // where tokens are bytes
    std::vector<std::int32_t> tokens;  // and where not
    std::size_t size = 0;
  };

  void add(Split split, std::string text) {
    Part& part = parts_[std::size_t(split)];
    if (bytes_) {
      part.size = text.size();
      part.text = std::move(text);
      return;
    }
    const std::vector<std::int64_t> tokens = tokenizer_->encode(text);
    part.tokens.assign(tokens.begin(), tokens.end());
    part.size = tokens.size();
  }

  /// Training windows begin anywhere; those of the others follow each other.
  void draw(Example& e) const override {
    const Part& part = parts_[std::size_t(e.split)];
    const std::size_t begin =
        e.split == Split::train ? std::size_t(e.rng.below(part.size - length_)) : std::size_t(e.index) * length_;
    const auto copy = [&](const auto& tokens) {
      for (std::size_t t = 0; t < length_; ++t) {
        e.tokens[t] = std::make_unsigned_t<std::remove_cvref_t<decltype(tokens[0])>>(tokens[begin + t]);
        e.labels[t] = std::make_unsigned_t<std::remove_cvref_t<decltype(tokens[0])>>(tokens[begin + t + 1]);
      }
    };
    bytes_ ? copy(part.text) : copy(part.tokens);
  }

  std::size_t length_;
  std::unique_ptr<Tokenizer> tokenizer_;
  bool bytes_ = true;
  std::array<Part, kSplits.size()> parts_;
};

/// Which file a passage is from: its beginning is for training, its end for the test.
class Passages final : public Task {
 public:
  explicit Passages(const TaskOptions& options)
      : Task(options), length_(std::size_t(options.size("length", 1, 1 << 24))), share_(options.number("test_share", 0, 1)) {
    const std::string& path = options.text("path");
    for (const char* other : {"field", "tokenizer"})
      require(options.text(other).empty(), "text", "expected no ", other, " with label=file, got ", options.text(other));
    require(is_folder(path), "text", "expected a folder of files to tell apart for label=file, got ", path);
    std::error_code none;
    for (const fs::path& file : files_below(path))
      if (!fs::is_symlink(file, none)) files_.push_back(read_bytes(file, kMostCorpusBytes));
    for (const auto& file : files_) data_hash_ = hash_of(std::as_bytes(std::span(file)), data_hash_ ^ kHashStart);
    require(files_.size() > 1, "text", "expected at least two files to tell apart in ", path, ", got ", files_.size());
    for (const auto& file : files_)
      require(std::min(file.size() - test_of(file), test_of(file)) >= length_, "text", "expected files of which both parts have ",
              length_, " bytes, got ", file.size() - test_of(file), " to train on and ", test_of(file), " for the test");
    shape_ = {.kind = TaskKind::tokens_class,
              .metric = Metric::example_accuracy,
              .length = Index(length_),
              .vocabulary = 256,
              .classes = Index(files_.size()),
              .bytes = true};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return own_text::spelled(*byte_tokenizer(), token); }

 private:
  [[nodiscard]] std::size_t test_of(const std::vector<unsigned char>& file) const {
    return std::size_t(share_ * double(file.size()));
  }
  /// All files alike.
  void draw(Example& e) const override {
    const std::size_t which = e.rng.below(files_.size());
    const auto& file = files_[which];
    const bool test = e.split == Split::test;
    const std::size_t size = test ? test_of(file) : file.size() - test_of(file);
    const std::size_t begin = (test ? file.size() - size : 0) + std::size_t(e.rng.below(size - length_ + 1));
    std::copy_n(file.begin() + std::ptrdiff_t(begin), length_, e.tokens.begin());
    e.labels[0] = std::int64_t(which);
  }

  std::size_t length_;
  double share_;
  std::vector<std::vector<unsigned char>> files_;
};

std::unique_ptr<Task> make_text(const TaskOptions& options) {
  if (options.choice("label", {"next", "file"}) == 1) return std::make_unique<Passages>(options);
  return std::make_unique<Text>(options);
}
}  // namespace

const TaskType task::text{
    .name = "text",
    .source = "any file, folder or field of records; without one, the Jargon File 4.4.7",
    .summary = "the next byte or token of a text, or the file that a passage is from",
    .own_options = kOptions,
    .make = make_text,
};

}  // namespace isomer
