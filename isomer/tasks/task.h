#pragma once
// A task is where data comes from. Example i of a split depends on (options, split, i) alone, so that a resumed run sees what an
// uninterrupted one would have seen, and any thread may make any batch.
//
//   const std::unique_ptr<Task> task = make_task("mqar", {{"length", "128"}, {"pairs", "8"}});
//   Batch batch;
//   task->fill(Split::train, step * 64, 64, batch);   // allocates in the first call only
//
// One task is one short file beside this one that defines one `const TaskType`, and a line in tasks.cc.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/base/rng.h"
#include "isomer/base/settings.h"

namespace isomer {

/// Validation is what is looked at during training where a task keeps some examples for it.
enum class Split { train, test, validation };
[[nodiscard]] std::string_view name_of(Split split);

enum class TaskKind {
  tokens,         // tokens in, a label at every token (or ignored)
  tokens_class,   // tokens in, one class
  vectors,        // vectors in, one vector out, read at the last position
  vectors_class,  // vectors in, one class
  autoencoder,    // tokens in, a label at every token, each decoded from the state after the last one
  table,          // rows of a table in, as vectors, and the labels of the first of them; a label at every other row
};
[[nodiscard]] std::string_view name_of(TaskKind kind);

/// How a task is scored; see score.h.
enum class Metric { token_accuracy, example_accuracy, exact, squared_error, bits_per_token };
[[nodiscard]] std::string_view name_of(Metric metric);
/// Is the best value of the metric its lowest?
[[nodiscard]] constexpr bool lower_is_better(Metric metric) {
  return metric == Metric::squared_error || metric == Metric::bits_per_token;
}

/// A label that carries no loss and is not scored.
inline constexpr std::int64_t kIgnored = -100;

/// What a model and a trainer need to know about a task.
struct TaskShape {
  TaskKind kind = TaskKind::tokens;
  Metric metric = Metric::token_accuracy;
  Index length = 0;      // tokens of the longest example of either split
  Index vocabulary = 0;  // different tokens; 0: the inputs are vectors
  Index classes = 0;     // different labels; 0: the targets are vectors
  Index features = 0;    // numbers of an input vector
  Index outputs = 0;     // numbers of a target vector
  Index known = 0;       // rows of a table whose labels are part of the input
  std::int64_t padding = 0;
  Index row = 0;                         // pixels of a row where the tokens are a picture's, row by row
  bool bytes = false;                    // are the tokens the bytes of a text?
  std::vector<std::string> labels = {};  // the names of the classes; empty: they have none
};

/// Working memory of generators, kept between calls.
struct Scratch {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};

struct Batch {
  Index B = 0, T = 0;                // T is the longest length of the batch
  std::vector<std::int64_t> tokens;  // [B, T], padded at the end
  std::vector<std::int64_t> labels;  // [B, T], aligned with the token that the answer is read from; classes: [B]
  std::vector<float> inputs;         // [B, T, features]
  std::vector<float> targets;        // [B, outputs]
  std::vector<float> known;          // [B, known]
  std::vector<Index> lengths;        // [B], tokens or vectors before the padding
  Scratch scratch;
};

/// What a generator fills in: padding, kIgnored and zeros stand there already.
struct Example {
  Split split;
  std::uint64_t index;
  Rng& rng;
  std::span<std::int64_t> tokens, labels;
  std::span<float> inputs, targets, known;
  Index& length;  // that of length_of(); a generator that ends earlier says so
  Scratch& scratch;
};

struct TaskType;

/// The options of a task with all values, and readers that check ranges.
class TaskOptions {
 public:
  TaskOptions(const TaskType& type, const Settings& settings);
  [[nodiscard]] const TaskType& type() const { return type_; }
  [[nodiscard]] const Settings& values() const { return values_; }
  [[nodiscard]] Index size(std::string_view name, Index least, Index most) const;
  [[nodiscard]] double number(std::string_view name, double least, double most) const;
  [[nodiscard]] bool flag(std::string_view name) const { return read_bool(values_, name, false); }
  [[nodiscard]] int choice(std::string_view name, std::initializer_list<std::string_view> choices) const;
  [[nodiscard]] const std::string& text(std::string_view name) const { return values_.find(name)->second; }

 private:
  const TaskType& type_;
  Settings values_;
};

class Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  [[nodiscard]] const TaskType& type() const { return type_; }
  [[nodiscard]] const TaskShape& shape() const { return shape_; }
  /// Every option with its value, given or not.
  [[nodiscard]] const Settings& options() const { return options_; }
  /// Different examples of a split; 0: without end.
  [[nodiscard]] std::uint64_t size(Split split) const { return sizes_[std::size_t(split)]; }
  /// Are there examples for evaluations during training, apart from those of the test?
  [[nodiscard]] bool has_validation() const { return has_validation_; }
  /// How many different ones there are for one who asks for `count`.
  [[nodiscard]] Index at_most(Split split, Index count) const {
    return size(split) == 0 ? count : Index(std::min(std::uint64_t(count), size(split)));
  }
  /// Of what it has read from files; 0: nothing.
  [[nodiscard]] std::uint64_t data_hash() const { return data_hash_; }
  /// Examples first … first + B − 1. Beyond size() they come again: those of train in another order each time.
  void fill(Split split, std::uint64_t first, Index B, Batch& batch) const;
  /// A token as a reader would write it.
  [[nodiscard]] virtual std::string spell(std::int64_t token) const { return std::to_string(token); }
  /// The tokenizer.json that text goes through to become tokens; empty: tokens are bytes, or what spell() writes.
  [[nodiscard]] virtual std::string tokenizer() const { return ""; }

 protected:
  explicit Task(const TaskOptions& options);
  /// Tokens or vectors of an example; all have shape().length unless a task says otherwise.
  [[nodiscard]] virtual Index length_of(Split split, std::uint64_t index) const;
  virtual void draw(Example& example) const = 0;
  /// The option of every task.
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// Numbers that all examples share. `which` tells streams apart.
  [[nodiscard]] Rng shared_stream(std::uint64_t which) const;
  /// The length of an example as a uniform number from least to most, independent of what draw() draws.
  [[nodiscard]] Index random_length(Split split, std::uint64_t index, Index least, Index most) const;

  TaskShape shape_;
  std::array<std::uint64_t, 3> sizes_{};
  bool has_validation_ = false;
  std::uint64_t data_hash_ = 0;
  Index block_ = 1;  // examples in a row that stay together, because they have one length
  /// Sequences of at least this many tokens belong to train or test by their content, shorter ones to train: the splits
  /// never share one. 0: splits differ by their random numbers alone.
  Index apart_from_ = 0;

 private:
  [[nodiscard]] std::uint64_t place(Split split, std::uint64_t i) const;
  void fill_one(Example& example) const;
  [[nodiscard]] bool dealt_to(Split split, std::span<const std::int64_t> tokens) const;

  const TaskType& type_;
  Settings options_;
  std::uint64_t seed_;
};

struct TaskType {
  std::string_view name;
  std::string_view source;   // who, when
  std::string_view summary;  // one line: what is asked
  std::span<const OptionSpec> own_options;
  std::string_view train_examples = "0", test_examples = "0";  // defaults, as text; 0: all, or without end
  std::unique_ptr<Task> (*make)(const TaskOptions& options);
};

/// The task's own options, then those that every task has: seed, train_examples, test_examples.
[[nodiscard]] std::vector<OptionSpec> options_of(const TaskType& type);
/// Is the value of such an option the path of a file or folder?
[[nodiscard]] constexpr bool is_path(std::string_view option) {
  return option == "path" || option.ends_with("_path") || option == "tokenizer";
}

/// All tasks, in the order of the documentation.
[[nodiscard]] std::span<const TaskType* const> tasks();
/// Throws Error naming the nearest task when there is none of that name.
[[nodiscard]] const TaskType& find_task(std::string_view name);
/// Throws Error for an unknown option (naming the nearest), a value out of range or values that do not go together.
[[nodiscard]] std::unique_ptr<Task> make_task(std::string_view name, const Settings& settings = {});

/// Do both give the same examples to one who asks for the first `count` of a split?
[[nodiscard]] bool same_examples(const Task& a, const Task& b, Split split, Index count);

}  // namespace isomer
