#include "isomer/tasks/task.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"

namespace isomer {

namespace {
// What a stream of random numbers is for stands in its top bits, which tell them apart from the index below.
constexpr int kIndexBits = 60;
enum class Stream : std::uint64_t { train, test, train_length, test_length, shared, validation, validation_length };
constexpr std::array kExamples{Stream::train, Stream::test, Stream::validation};
constexpr std::array kLengths{Stream::train_length, Stream::test_length, Stream::validation_length};

std::uint64_t stream_of(Stream what, std::uint64_t index) { return (std::uint64_t(what) << kIndexBits) | index; }

// The order of an epoch has random numbers of its own.
constexpr std::uint64_t kOrderKey = 0x6f72646572;

constexpr std::array<OptionSpec, 1> kCommon{{{"seed", "0", "another number gives other examples"}}};

std::uint64_t read_count(const Settings& values, std::string_view name) {
  const std::string& text = values.find(name)->second;
  Index value = 0;
  require(parse_number(text, value) && value >= 0 && (value >> kIndexBits) == 0, std::string(name).c_str(),
          "expected a whole number below 2^60, got ", text);
  return std::uint64_t(value);
}

bool has_tokens(TaskKind kind) {
  return kind == TaskKind::tokens || kind == TaskKind::tokens_class || kind == TaskKind::autoencoder;
}

/// How many labels an example of T tokens has.
Index labels_of(TaskKind kind, Index T) {
  if (kind == TaskKind::vectors) return 0;
  return kind == TaskKind::tokens_class || kind == TaskKind::vectors_class ? 1 : T;
}

template <class T>
std::span<T> row_of(std::vector<T>& all, Index row, Index size) {
  return std::span<T>(all).subspan(std::size_t(row * size), std::size_t(size));
}

/// As many values as this batch needs, with room for the largest, so that no later call allocates.
template <class T>
void prepare(std::vector<T>& all, Index now, Index largest, T value) {
  all.reserve(std::size_t(largest));
  all.assign(std::size_t(now), value);
}
}  // namespace

std::string_view name_of(Split split) {
  constexpr std::array<std::string_view, 3> kNames{"train", "test", "validation"};
  return kNames[std::size_t(split)];
}

std::string_view name_of(TaskKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"tokens -> tokens", "tokens -> class",      "vectors -> vector",
                                                   "vectors -> class", "last token -> tokens", "rows -> classes"};
  return kNames[std::size_t(kind)];
}

std::string_view name_of(Metric metric) {
  constexpr std::array<std::string_view, 5> kNames{"token accuracy", "example accuracy", "exact", "squared error",
                                                   "bits per token"};
  return kNames[std::size_t(metric)];
}

std::vector<OptionSpec> options_of(const TaskType& type) {
  std::vector<OptionSpec> all(type.own_options.begin(), type.own_options.end());
  all.insert(all.end(), kCommon.begin(), kCommon.end());
  all.push_back(
      {"train_examples", type.train_examples, "different training examples, in another order each epoch; 0: all there are"});
  all.push_back({"test_examples", type.test_examples, "different test examples; 0: all there are"});
  return all;
}

TaskOptions::TaskOptions(const TaskType& type, const Settings& settings) : type_(type) {
  const std::vector<OptionSpec> options = options_of(type);
  require_known(type.name, settings, options);
  values_ = settings;
  for (const OptionSpec& option : options) values_.try_emplace(std::string(option.name), option.fallback);
}

Index TaskOptions::size(std::string_view name, Index least, Index most) const {
  const Index value = read_size(values_, name, 0);
  require(value >= least && value <= most, type_.name.data(), "expected ", name, " from ", least, " to ", most, ", got ", value);
  return value;
}

double TaskOptions::number(std::string_view name, double least, double most) const {
  const double value = read_number(values_, name, 0);
  require(value >= least && value <= most, type_.name.data(), "expected ", name, " from ", least, " to ", most, ", got ", value);
  return value;
}

int TaskOptions::choice(std::string_view name, std::initializer_list<std::string_view> choices) const {
  return read_choice(values_, name, std::vector<std::string_view>(choices));
}

Task::Task(const TaskOptions& options)
    : sizes_{read_count(options.values(), "train_examples"), read_count(options.values(), "test_examples")},
      type_(options.type()),
      options_(options.values()),
      seed_(read_count(options.values(), "seed")) {}

Index Task::length_of(Split /*split*/, std::uint64_t /*index*/) const { return shape_.length; }

Rng Task::shared_stream(std::uint64_t which) const { return Rng(seed_, stream_of(Stream::shared, which)); }

Index Task::random_length(Split split, std::uint64_t index, Index least, Index most) const {
  Rng rng(seed_, stream_of(kLengths[std::size_t(split)], index));
  return draw::between(rng, least, most);
}

std::uint64_t Task::place(Split split, std::uint64_t i) const {
  const std::uint64_t n = size(split), block = std::uint64_t(block_);
  if (n == 0) return i;
  const std::uint64_t at = i % n, whole = n / block;
  if (split != Split::train || at >= whole * block) return at;
  return draw::permuted(at / block, whole, seed_ ^ kOrderKey, i / n) * block + at % block;
}

bool Task::dealt_to(Split split, std::span<const std::int64_t> tokens) const {
  if (apart_from_ == 0) return true;
  if (Index(tokens.size()) < apart_from_) return split == Split::train;
  // FNV-1a over tokens, then a multiply that carries all bits to the top ones, which decide.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::int64_t token : tokens) hash = (hash ^ std::uint64_t(token)) * 0x100000001b3;
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
  constexpr std::uint64_t kTestShare = 16;  // one sequence in so many is a test sequence
  return ((hash >> 32) % kTestShare == 0) == (split != Split::train);
}

void Task::fill_one(Example& example) const {
  for (;;) {
    draw(example);
    if (dealt_to(example.split, example.tokens)) return;
    std::fill(example.tokens.begin(), example.tokens.end(), shape_.padding);
    std::fill(example.labels.begin(), example.labels.end(), kIgnored);
  }
}

void Task::fill(Split split, std::uint64_t first, Index B, Batch& batch) const {
  require(B >= 0 && ((first + std::uint64_t(B)) >> kIndexBits) == 0, type_.name.data(), "expected examples below 2^60, got ", B,
          " from ", first);
  require(split != Split::validation || has_validation_, type_.name.data(), "expected train or test, got validation");
  batch.B = B;
  batch.T = 0;
  batch.lengths.resize(std::size_t(B));
  for (Index b = 0; b < B; ++b) {
    Index& length = batch.lengths[std::size_t(b)];
    length = length_of(split, place(split, first + std::uint64_t(b)));
    batch.T = std::max(batch.T, length);
  }
  const TaskKind kind = shape_.kind;
  const Index tokens = has_tokens(kind) ? batch.T : 0, labels = labels_of(kind, batch.T);
  const Index inputs = has_tokens(kind) ? 0 : batch.T * shape_.features;
  prepare(batch.tokens, B * tokens, has_tokens(kind) ? B * shape_.length : 0, shape_.padding);
  prepare(batch.labels, B * labels, B * labels_of(kind, shape_.length), kIgnored);
  prepare(batch.inputs, B * inputs, has_tokens(kind) ? 0 : B * shape_.length * shape_.features, 0.0F);
  prepare(batch.targets, B * shape_.outputs, B * shape_.outputs, 0.0F);
  prepare(batch.known, B * shape_.known, B * shape_.known, 0.0F);
  for (Index b = 0; b < B; ++b) {
    Index& length = batch.lengths[std::size_t(b)];
    const std::uint64_t index = place(split, first + std::uint64_t(b));
    Rng rng(seed_, stream_of(kExamples[std::size_t(split)], index));
    Example example{.split = split,
                    .index = index,
                    .rng = rng,
                    .tokens = row_of(batch.tokens, b, tokens).first(std::size_t(std::min(length, tokens))),
                    .labels = row_of(batch.labels, b, labels).first(std::size_t(std::min(length, labels))),
                    .inputs = row_of(batch.inputs, b, inputs).first(std::size_t(std::min(length * shape_.features, inputs))),
                    .targets = row_of(batch.targets, b, shape_.outputs),
                    .known = row_of(batch.known, b, shape_.known),
                    .length = length,
                    .scratch = batch.scratch};
    fill_one(example);
  }
}

bool same_examples(const Task& a, const Task& b, Split split, Index count) {
  constexpr Index kAtOnce = 64;
  const Index examples = a.at_most(split, count);
  if (b.at_most(split, count) != examples || a.shape().metric != b.shape().metric) return false;
  Batch one, other;
  for (Index first = 0; first < examples; first += kAtOnce) {
    const Index some = std::min(kAtOnce, examples - first);
    a.fill(split, std::uint64_t(first), some, one);
    b.fill(split, std::uint64_t(first), some, other);
    if (one.lengths != other.lengths || one.tokens != other.tokens || one.labels != other.labels || one.inputs != other.inputs ||
        one.targets != other.targets || one.known != other.known)
      return false;
  }
  return true;
}

}  // namespace isomer
