// Classes of texts, from records with a text and a label.
#include <algorithm>
#include <set>
#include <utility>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/io/corpus.h"
#include "isomer/tasks/list.h"
#include "isomer/tasks/own_text.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 10> kOptions{{
    {"path", "", "records: .jsonl, .csv or .tsv, packed or not"},
    {"text", "text", "the field that is read"},
    {"label", "label", "the field that is asked for"},
    {"labels", "", "their names in order, separated by commas; without them, all that there are, sorted"},
    {"tokenizer", "", "a tokenizer.json, or a model that has one; without, tokens are bytes"},
    {"length", "256", "tokens that are read of a text; the rest is cut off"},
    {"test_share", "0.1", "share of the records that is kept for the test, chosen by the seed; without test_path"},
    {"validation_share", "0", "share that is kept for evaluations during training; without validation_path"},
    {"test_path", "", "records for the test instead"},
    {"validation_path", "", "records for the validation instead"},
}};

constexpr std::array kSplits{Split::train, Split::validation, Split::test};

struct Text {
  std::vector<std::int32_t> tokens;
  std::int32_t label;
};

std::vector<std::string> listed(const std::string& names) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    all.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

class Classify final : public Task {
 public:
  explicit Classify(const TaskOptions& options)
      : Task(options), length_(std::size_t(options.size("length", 1, 1 << 20))), tokenizer_(own_text::tokenizer_of(options)) {
    require(!options.text("path").empty(), "classify", "expected a path, got none");
    std::array<Rows, kSplits.size()> rows = read(options);
    for (const Rows& part : rows)
      for (const std::vector<std::string>& row : part.rows)
        for (const std::string& field : row) data_hash_ = hash_of(field, data_hash_ ^ kHashStart);
    if (tokenizer_->name() != "bytes") data_hash_ = hash_of(tokenizer_->to_json(), data_hash_ ^ kHashStart);
    name_labels(options, rows);
    for (const Split split : kSplits) add(split, rows[std::size_t(split)]);
    has_validation_ = !texts_[std::size_t(Split::validation)].empty();
    for (const Split split : kSplits) {
      if (split == Split::validation && !has_validation_) continue;
      const std::uint64_t count = texts_[std::size_t(split)].size();
      require(count > 0, "classify", "expected records for ", name_of(split), ", got none");
      std::uint64_t& size = sizes_[std::size_t(split)];
      size = size == 0 ? count : std::min(size, count);
    }
    shape_.kind = TaskKind::tokens_class;
    shape_.metric = Metric::example_accuracy;
    shape_.length = Index(length_);
    shape_.vocabulary = tokenizer_->vocabulary();
    shape_.classes = Index(shape_.labels.size());
    shape_.bytes = tokenizer_->name() == "bytes";
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override { return own_text::spelled(*tokenizer_, token); }
  [[nodiscard]] std::string tokenizer() const override { return shape_.bytes ? "" : tokenizer_->to_json(); }

 private:
  struct Rows {
    std::string path;
    std::vector<std::vector<std::string>> rows;
  };

  [[nodiscard]] std::array<Rows, kSplits.size()> read(const TaskOptions& options) const {
    const std::array<std::string, 2> fields{options.text("text"), options.text("label")};
    std::array<Rows, kSplits.size()> all;
    own_text::Shares shares(options);
    for (const auto& [split, option, share] :
         {std::tuple{Split::test, "test_path", &shares.test}, {Split::validation, "validation_path", &shares.validation}}) {
      all[std::size_t(split)].path = options.text(option);
      if (options.text(option).empty()) continue;
      *share = 0;
      all[std::size_t(split)].rows = read_records(options.text(option), fields);
    }
    std::vector<std::vector<std::string>> rows = read_records(options.text("path"), fields);
    const std::vector<Split> splits = own_text::deal(rows.size(), shares, seed());
    for (std::size_t i = 0; i < rows.size(); ++i) all[std::size_t(splits[i])].rows.push_back(std::move(rows[i]));
    for (Rows& part : all)
      if (part.path.empty()) part.path = options.text("path");
    return all;
  }

  void name_labels(const TaskOptions& options, const std::array<Rows, kSplits.size()>& rows) {
    shape_.labels = listed(options.text("labels"));
    if (shape_.labels.empty()) {
      std::set<std::string> names;
      for (const Rows& part : rows)
        for (const auto& row : part.rows) names.insert(row[1]);
      shape_.labels.assign(names.begin(), names.end());
    }
    require(shape_.labels.size() > 1, "classify", "expected at least two labels, got ", shape_.labels.size());
  }

  void add(Split split, const Rows& part) {
    for (const auto& row : part.rows) {
      const auto label = std::ranges::find(shape_.labels, row[1]);
      require(label != shape_.labels.end(), "classify", "expected a label of ", options().find("labels")->second, ", got ",
              row[1], " in ", part.path);
      const std::vector<std::int64_t> tokens = input_of(*tokenizer_, row[0], length_);
      require(!tokens.empty(), "classify", "expected a text for every record, got an empty one with the label ", row[1], " in ",
              part.path);
      texts_[std::size_t(split)].push_back({{tokens.begin(), tokens.end()}, std::int32_t(label - shape_.labels.begin())});
    }
  }

  [[nodiscard]] Index length_of(Split split, std::uint64_t index) const override {
    return Index(texts_[std::size_t(split)][index].tokens.size());
  }
  void draw(Example& e) const override {
    const Text& text = texts_[std::size_t(e.split)][e.index];
    std::ranges::copy(text.tokens, e.tokens.begin());
    e.labels[0] = text.label;
  }

  std::size_t length_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::array<std::vector<Text>, kSplits.size()> texts_;
};
}  // namespace

const TaskType task::classify{
    .name = "classify",
    .source = "any records with a text and a label",
    .summary = "the class of a text",
    .own_options = kOptions,
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<Classify>(options); },
};

}  // namespace isomer
