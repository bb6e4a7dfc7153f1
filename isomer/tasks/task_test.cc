// What holds for every task: examples depend on their index alone, batches are reused, options explain themselves.
#include "isomer/tasks/task.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "isomer/base/hash.h"
#include "isomer/base/stopwatch.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/score.h"
#include "isomer/tasks/testing.h"
#include "tests/heap.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

/// A folder with 64 small pictures to train on and 32 to test on, gone at the end.
struct Pictures {
  tests::TemporaryFolder folder;
  Pictures() {
    Rng rng(1);
    for (const auto& [prefix, n] : {std::pair<std::string, char>{"train", 64}, {"t10k", 32}}) {
      std::ofstream images(folder.path / (prefix + "-images-idx3-ubyte")), labels(folder.path / (prefix + "-labels-idx1-ubyte"));
      images << std::string{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 8, 0, 0, 0, 8};
      labels << std::string{0, 0, 8, 1, 0, 0, 0, n};
      for (int i = 0; i < n * 64; ++i) images << char(rng.below(256));
      for (int i = 0; i < n; ++i) labels << char(rng.below(10));
    }
  }
};

std::string pictures() {
  static const Pictures all;
  return all.folder.path;
}

/// 64 colour pictures to train on and 32 to test on.
std::string colours() {
  static const tests::TemporaryFolder kFolder;
  const std::filesystem::path train = kFolder.path / "data_batch_1.bin", test = kFolder.path / "test_batch.bin";
  if (std::filesystem::exists(test)) return kFolder.path;
  Rng rng(1);
  for (const auto& [path, n] : {std::pair{train, 64}, {test, 32}}) {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < n; ++i) {
      file << char(rng.below(10));
      for (int p = 0; p < 3072; ++p) file << char(rng.below(256));
    }
  }
  return kFolder.path;
}

/// Records of 200 words of 1 to 9 letters: is the first letter in the first half of the alphabet?
std::string records() {
  static const tests::TemporaryFolder kFolder;
  const std::string path = kFolder.path / "words.csv";
  if (std::filesystem::exists(path)) return path;
  std::ofstream file(path);
  file << "text,label\n";
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    std::string word;
    for (std::uint64_t n = 1 + rng.below(9); n > 0; --n) word += char('a' + rng.below(26));
    file << word << (word[0] < 'n' ? ",first\n" : ",second\n");
  }
  return path;
}

/// Small settings, so that every task is quick and needs no files but those of the tree.
Settings small(std::string_view task) {
  if (task == "text") return {{"path", ISOMER_SOURCE_DIR "/isomer/tasks"}, {"length", "64"}};
  if (task == "classify") return {{"path", records()}, {"length", "64"}, {"test_share", "0.25"}};
  if (task == "images") return {{"path", pictures()}, {"patch", "2"}};
  if (task == "cifar") return {{"path", colours()}};
  if (task == "selective-copying") return {{"noise", "100"}};
  if (task == "word-problem") return {{"test_length", "64"}};
  return {};
}

struct EveryTask : testing::TestWithParam<const TaskType*> {
  const TaskType& type = *GetParam();
  std::unique_ptr<Task> task = make_task(type.name, small(type.name));
  const TaskShape& shape = task->shape();
};

/// Example b of a batch without its padding.
struct Row {
  std::vector<std::int64_t> tokens, labels;
  std::vector<float> inputs, targets, known;
  bool operator==(const Row&) const = default;
};

template <class T>
std::vector<T> part(const std::vector<T>& all, Index b, Index B, Index kept, Index T_) {
  const std::size_t each = all.size() / std::size_t(B), keep = each * std::size_t(kept) / std::size_t(T_);
  const auto begin = all.begin() + std::ptrdiff_t(std::size_t(b) * each);
  return {begin, begin + std::ptrdiff_t(keep)};
}

Row row(const Batch& batch, Index b, TaskKind kind) {
  const bool one_label = kind == TaskKind::tokens_class || kind == TaskKind::vectors_class;
  const Index length = batch.lengths[std::size_t(b)];
  return {part(batch.tokens, b, batch.B, length, batch.T),
          part(batch.labels, b, batch.B, one_label ? 1 : length, one_label ? 1 : batch.T),
          part(batch.inputs, b, batch.B, length, batch.T), part(batch.targets, b, batch.B, 1, 1),
          part(batch.known, b, batch.B, 1, 1)};
}

TEST_P(EveryTask, MakesAnExampleFromItsIndexAlone) {
  for (Split split : {Split::train, Split::test}) {
    Batch many, few;
    task->fill(split, 100, 12, many);
    for (Index first : {5, 0, 9}) {
      task->fill(split, std::uint64_t(100 + first), 3, few);
      for (Index b = 0; b < 3; ++b) EXPECT_EQ(row(few, b, shape.kind), row(many, first + b, shape.kind)) << first + b;
    }
  }
}

TEST_P(EveryTask, MakesTheSameOnAnyThread) {
  Batch here, there;
  task->fill(Split::train, 7, 4, here);
  std::thread([&] { task->fill(Split::train, 7, 4, there); }).join();
  for (Index b = 0; b < 4; ++b) EXPECT_EQ(row(here, b, shape.kind), row(there, b, shape.kind));
}

TEST_P(EveryTask, KeepsToItsShape) {
  for (Split split : {Split::train, Split::test}) {
    Batch batch;
    for (std::uint64_t first : {0, 1000, 6990}) {
      task->fill(split, first, 5, batch);
      EXPECT_EQ(batch.B, 5);
      EXPECT_LE(batch.T, shape.length);
      EXPECT_EQ(Index(batch.tokens.size()), shape.vocabulary > 0 ? 5 * batch.T : 0);
      EXPECT_EQ(Index(batch.inputs.size()), shape.vocabulary > 0 ? 0 : 5 * batch.T * shape.features);
      EXPECT_EQ(Index(batch.targets.size()), 5 * shape.outputs);
      EXPECT_EQ(Index(batch.known.size()), 5 * shape.known);
      for (float label : batch.known) EXPECT_TRUE(label >= 0 && label < float(shape.classes)) << label;
      for (std::int64_t token : batch.tokens) EXPECT_TRUE(token >= 0 && token < shape.vocabulary) << token;
      Index labelled = 0;
      for (std::int64_t label : batch.labels) {
        EXPECT_TRUE(label == kIgnored || (label >= 0 && label < shape.classes)) << label;
        labelled += label != kIgnored ? 1 : 0;
      }
      EXPECT_TRUE(labelled >= 5 || shape.outputs > 0);
      for (float x : batch.inputs) EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST_P(EveryTask, DiffersBySplitIndexAndSeed) {
  Settings other = small(type.name);
  other["seed"] = "1";
  const auto reseeded = make_task(type.name, other);
  Batch a, b;
  task->fill(Split::train, 0, 1, a);
  const auto differs = [&](const Task& source, Split split, std::uint64_t index) {
    source.fill(split, index, 1, b);
    return !(row(a, 0, shape.kind) == row(b, 0, shape.kind));
  };
  EXPECT_TRUE(differs(*task, Split::train, 1));
  EXPECT_TRUE(differs(*task, Split::test, 0));
  EXPECT_TRUE(differs(*reseeded, Split::train, 0));
}

TEST_P(EveryTask, AllocatesInTheFirstCallOnly) {
  Batch batch;
  for (Split split : {Split::train, Split::test}) task->fill(split, 0, 4, batch);
  const long before = tests::heap_allocations();
  for (std::uint64_t step = 1; step < 20; ++step) task->fill(step % 4 == 0 ? Split::test : Split::train, 4 * step, 4, batch);
  EXPECT_EQ(tests::heap_allocations(), before);
}

TEST_P(EveryTask, ExplainsItsOptions) {
  EXPECT_FALSE(type.summary.empty());
  EXPECT_FALSE(type.source.empty());
  std::set<std::string_view> names;
  for (const OptionSpec& option : options_of(type)) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    const Settings given = small(type.name);
    const auto set = given.find(option.name);
    EXPECT_EQ(task->options().find(option.name)->second, set == given.end() ? option.fallback : set->second);
  }
  EXPECT_EQ(error_of(type.name, {{"sead", "1"}}), std::string(type.name) + ": unknown option sead, did you mean seed?");
  Settings negative = small(type.name);
  negative["seed"] = "-1";
  EXPECT_EQ(error_of(type.name, negative), "seed: expected a whole number below 2^60, got -1");
  // Every option that takes a number refuses words.
  for (const OptionSpec& option : type.own_options) {
    if (option.fallback.find_first_not_of("0123456789.-") != std::string_view::npos || option.fallback.empty()) continue;
    Settings wrong = small(type.name);
    wrong[std::string(option.name)] = "many";
    EXPECT_NE(error_of(type.name, wrong).find("expected"), std::string::npos) << option.name;
  }
}

/// Training takes more than 100 us a token on one core; a generator must be far below, even on a busy machine.
TEST_P(EveryTask, IsFast) {
  Batch batch;
  task->fill(Split::train, 0, 16, batch);
  const Stopwatch watch;
  for (std::uint64_t step = 1; step <= 8; ++step) task->fill(Split::train, 16 * step, 16, batch);
  const double us = watch.seconds() * 1e6 / 128;
  std::printf("%-18s %9.1f us an example of %td tokens\n", std::string(type.name).c_str(), us, shape.length);
  EXPECT_LT(us / double(shape.length), 50);
}

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, testing::ValuesIn(tasks().begin(), tasks().end()), [](const auto& chosen) {
  std::string name(chosen.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Tasks, UnknownOnesNameTheNearest) {
  EXPECT_EQ(error_of("mqqar", {}), "unknown task mqqar, did you mean mqar?");
  EXPECT_EQ(error_of("parity", {{"labels", "first"}}), "labels: expected last or every, got first");
}

TEST(Tasks, ComeAgainInAnotherOrderEachEpoch) {
  const auto task = make_task("mqar", {{"train_examples", "50"}, {"test_examples", "20"}});
  const auto examples = [&](Split split, std::uint64_t first, std::uint64_t count) {
    std::vector<std::vector<std::int64_t>> all;
    Batch batch;
    for (std::uint64_t i = first; i < first + count; ++i) {
      task->fill(split, i, 1, batch);
      all.push_back(batch.tokens);
    }
    return all;
  };
  auto one = examples(Split::train, 0, 50), two = examples(Split::train, 50, 50);
  EXPECT_NE(one, two);
  std::sort(one.begin(), one.end());
  std::sort(two.begin(), two.end());
  EXPECT_EQ(one, two);
  EXPECT_EQ(std::set(one.begin(), one.end()).size(), 50U);
  EXPECT_EQ(examples(Split::test, 0, 20), examples(Split::test, 20, 20));
}

/// What a run that was started with an earlier version has seen must come again when it is resumed: a changed number here
/// belongs into the changelog. Of vectors a thousandth counts, not the last bit of a sine. Only text is left out, which is read
/// from files of this tree.
TEST(Tasks, MakeTheExamplesTheyAlwaysMade) {
  const std::map<std::string_view, std::uint64_t> known{
      {"mqar", 0xf876873547ad2509},       {"mqar-based", 0x4d6ff94359c68ef9},   {"induction", 0x1b46359c73220bff},
      {"needle", 0xf564ac8b22d4dc5e},     {"copying", 0x9473f3f856051607},      {"selective-copying", 0xc7c618ace4c585ef},
      {"mad-recall", 0xaaa059518f8cfc85}, {"mad-noisy", 0x5e26359d4eac7719},    {"mad-fuzzy", 0xb277e79e199f209f},
      {"mad-copy", 0x66dfe7abdc27c431},   {"mad-memorize", 0x5c81f710cb7f69bf}, {"mad-compress", 0x534716fc903b0c11},
      {"parity", 0x28bad8c64ca22082},     {"word-problem", 0x289f6988b19c8aaf}, {"listops", 0xddcdb55178b18cc3},
      {"pathfinder", 0xa326c13a46706f29}, {"regression", 0x1d2636d8d22c748f},   {"tables", 0x8be8378393ce6d1},
      {"images", 0xc20dbf915d702c09},     {"cifar", 0x2fe1459d453d78ea},        {"classify", 0x60b90d4e20c407b2}};
  EXPECT_EQ(known.size() + 1, tasks().size());
  for (const auto& [name, hash] : known) {
    const bool reads = name == "images" || name == "cifar" || name == "classify";
    const auto task = make_task(name, reads ? small(name) : Settings{});
    std::uint64_t seen = 0xcbf29ce484222325;
    const auto mix = [&](std::int64_t x) { seen = (seen ^ std::uint64_t(x)) * 0x100000001b3; };
    Batch batch;
    for (Split split : {Split::train, Split::test})
      for (std::uint64_t first : {0, 12345}) {
        task->fill(split, first, 3, batch);
        for (std::int64_t token : batch.tokens) mix(token);
        for (std::int64_t label : batch.labels) mix(label);
        for (const std::vector<float>* vectors : {&batch.inputs, &batch.targets, &batch.known})
          for (const float x : *vectors) mix(std::lround(1024 * x));
      }
    EXPECT_EQ(seen, hash) << name << " " << hex_of(seen);
  }
}

TEST(Draw, PermutesEveryRange) {
  for (std::uint64_t n : {1, 2, 3, 4, 5, 16, 17, 100, 1000}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) seen.insert(draw::permuted(i, n, 3, 1));
    EXPECT_EQ(seen.size(), n);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
  // A large range too, without a table.
  const std::uint64_t large = std::uint64_t{1} << 59;
  EXPECT_LT(draw::permuted(large - 1, large, 3, 1), large);
}

// All 5·4·3 ordered choices of three of five are equally likely.
TEST(Draw, DistinctItemsComeInEveryOrderEquallyOften) {
  Rng rng(1);
  std::map<std::vector<std::int64_t>, int> seen;
  std::vector<std::int64_t> items(3);
  constexpr int kTrials = 60000;
  for (int i = 0; i < kTrials; ++i) {
    draw::distinct(rng, 5, items);
    ++seen[items];
  }
  EXPECT_EQ(seen.size(), 60U);
  for (const auto& [which, times] : seen) expect_share(times, kTrials, 1.0 / 60);
}

TEST(Score, EveryMetricIsInTheDocumentationOfItsTasks) {
  std::ifstream file(ISOMER_SOURCE_DIR "/isomer/tasks/README.md");
  std::map<std::string, std::string> lines;  // by metric
  for (std::string line; std::getline(file, line);)
    for (const Metric metric :
         {Metric::token_accuracy, Metric::example_accuracy, Metric::exact, Metric::squared_error, Metric::bits_per_token})
      if (line.starts_with("| `" + std::string(name_of(metric)) + "` |")) lines[std::string(name_of(metric))] = line;
  EXPECT_EQ(lines.size(), 5u);
  for (const TaskType* type : tasks()) {
    const std::string name(type->name), metric(name_of(make_task(name, small(name))->shape().metric));
    const std::string said = name.starts_with("mad-") ? "`mad-…`" : "`" + name + "`";
    EXPECT_NE(lines[metric].find(said), std::string::npos) << name << " has " << metric;
  }
}

TEST(Score, CountsTokensExamplesAndWholes) {
  Batch batch;
  batch.B = 3;
  batch.labels = {1, 2, kIgnored, 3, kIgnored, kIgnored};
  batch.targets = {1, 2, 3};
  Score score;
  EXPECT_TRUE(std::isnan(score.value(Metric::exact)));
  score.add(batch, std::vector<std::int64_t>{1, 0, 9, 3, 9, 9});
  EXPECT_DOUBLE_EQ(score.value(Metric::token_accuracy), 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.value(Metric::example_accuracy), 0.75);
  EXPECT_DOUBLE_EQ(score.value(Metric::exact), 0.5);
  score.add(batch, std::vector<float>{1, 4, 2});
  EXPECT_DOUBLE_EQ(score.value(Metric::squared_error), 5.0 / 3);
  score.add_loss(std::log(4.0) * 10, 10);
  EXPECT_DOUBLE_EQ(score.value(Metric::bits_per_token), 2);
  EXPECT_THROW(score.add(batch, std::vector<std::int64_t>{1}), Error);
  EXPECT_THROW(score.add(batch, std::vector<float>{1}), Error);
}

}  // namespace
}  // namespace isomer
