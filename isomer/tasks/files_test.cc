// Tasks that read files: text and images.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "isomer/models/byte_pairs.h"
#include "isomer/tasks/testing.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;

struct Files : testing::Test {
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path;
  void SetUp() override { fs::create_directories(folder / "sub" / ".hidden"); }
  void write(const std::string& name, const std::string& bytes) const { std::ofstream(folder / name, std::ios::binary) << bytes; }
};

std::string text_of(const Task& task, const std::vector<std::int64_t>& tokens) {
  std::string text;
  for (std::int64_t token : tokens) text += task.spell(token);
  return text;
}

using TextTask = Files;

TEST_F(TextTask, ReadsAFolderInOrderAndTestsItsEnd) {
  std::string a(500, 'a'), b(400, 'b'), c(100, 'c');
  for (std::size_t i = 0; i < 100; ++i) c[i] = char('0' + i % 10);
  write("sub/b.txt", b);
  write("a.txt", a);
  write("sub/c.txt", c);
  write(".secret", "hidden");
  write("sub/.hidden/d", "hidden");
  const auto task = make_task("text", {{"path", folder}, {"length", "20"}, {"test_share", "0.1"}});
  EXPECT_EQ(task->size(Split::train), 0U);
  EXPECT_EQ(task->size(Split::test), 4U);  // windows of 20 inputs and one more label in 100 bytes
  std::string seen;
  each_example(*task, Split::test, 4, [&](const Batch& batch) {
    seen += text_of(*task, batch.tokens);
    EXPECT_EQ(text_of(*task, batch.labels), text_of(*task, batch.tokens).substr(1) + "0");
  });
  EXPECT_EQ(seen, c.substr(0, 80));
  double of_a = 0;
  each_example(*task, Split::train, 2000, [&](const Batch& batch) {
    const std::string text = text_of(*task, batch.tokens);
    EXPECT_EQ(text.find_first_not_of("ab"), std::string::npos);
    EXPECT_EQ(text_of(*task, batch.labels).substr(0, 19), text.substr(1));
    of_a += text[0] == 'a' ? 1 : 0;
  });
  expect_share(of_a, 2000, 500.0 / 880);
}

TEST_F(TextTask, SpellsEveryByte) {
  write("bytes", std::string("a\n\0\xff~", 5) + std::string(100, ' '));
  const auto task = make_task("text", {{"path", folder / "bytes"}, {"length", "4"}, {"test_share", "0.5"}});
  EXPECT_EQ(task->spell('a') + task->spell('\n') + task->spell(0) + task->spell(255), "a\\n\\x00\\xff");
}

TEST_F(TextTask, TellsWhichFileAPassageIsFrom) {
  write("a", std::string(80, 'a') + std::string(20, 'A'));
  write("b", std::string(160, 'b') + std::string(40, 'B'));
  fs::create_symlink("b", folder / "c");
  const Settings options{{"path", folder}, {"length", "10"}, {"test_share", "0.2"}, {"label", "file"}};
  const auto task = make_task("text", options);
  EXPECT_EQ(task->shape().classes, 2);
  for (const Split split : {Split::train, Split::test}) {
    double of_a = 0;
    each_example(*task, split, 1000, [&](const Batch& batch) {
      const bool a = batch.labels[0] == 0;
      const char want = split == Split::train ? (a ? 'a' : 'b') : (a ? 'A' : 'B');
      EXPECT_EQ(text_of(*task, batch.tokens), std::string(10, want));
      of_a += a ? 1 : 0;
    });
    expect_share(of_a, 1000, 0.5);
  }
  Settings other = options;
  other["length"] = "30";
  EXPECT_EQ(error_of("text", other),
            "text: expected files of which both parts have 30 bytes, got 80 to train on and 20 for the test");
  other["path"] = folder / "a";
  EXPECT_EQ(error_of("text", other),
            "text: expected a folder of files to tell apart for label=file, got " + (folder / "a").string());
  fs::remove(folder / "b");
  fs::remove(folder / "c");
  other["path"] = folder;
  EXPECT_EQ(error_of("text", other), "text: expected at least two files to tell apart in " + folder.string() + ", got 1");
}

TEST_F(TextTask, SaysWhatIsMissing) {
  EXPECT_EQ(error_of("text", {{"path", "/nowhere/at/all"}}), "cannot read /nowhere/at/all: No such file or directory");
  EXPECT_EQ(error_of("text", {{"path", folder / "sub"}}), "text: expected files in " + (folder / "sub").string() + ", got none");
  write("short", std::string(100, 'x'));
  EXPECT_EQ(error_of("text", {{"path", folder / "short"}}), "text: expected more than 256 bytes to train on, got 95");
  EXPECT_EQ(error_of("text", {{"path", folder / "short"}, {"length", "50"}}),
            "text: expected more than 50 bytes for the test, got 5");
}

TEST_F(TextTask, KeepsAShareForValidationBeforeTheTest) {
  write("text", std::string(600, 'a') + std::string(300, 'v') + std::string(100, 't'));
  const auto task =
      make_task("text", {{"path", folder / "text"}, {"length", "20"}, {"test_share", "0.1"}, {"validation_share", "0.3"}});
  EXPECT_TRUE(task->has_validation());
  EXPECT_EQ(task->size(Split::validation), 14U);
  for (const auto& [split, letter] : {std::pair{Split::train, "a"}, {Split::validation, "v"}, {Split::test, "t"}})
    each_example(*task, split, 30, [&, letter = letter, split = split](const Batch& batch) {
      EXPECT_EQ(text_of(*task, batch.tokens).find_first_not_of(letter), std::string::npos) << name_of(split);
    });
  const auto without = make_task("text", {{"path", folder / "text"}, {"length", "20"}});
  EXPECT_FALSE(without->has_validation());
  Batch batch;
  EXPECT_EQ(tests::error_of([&] { without->fill(Split::validation, 0, 1, batch); }),
            "text: expected train or test, got validation");
  EXPECT_EQ(error_of("text", {{"path", folder / "text"}, {"test_share", "0.5"}, {"validation_share", "0.5"}}),
            "text: expected shares for test and validation below 1 together, got 1");
  EXPECT_EQ(error_of("text", {{"path", folder / "text"}, {"test_share", "0.3"}, {"validation_share", "0.01"}}),
            "text: expected more than 256 bytes for the validation, got 10");
}

TEST_F(TextTask, DealsTheRecordsOfAFieldToTheSplits) {
  std::string lines;
  for (int i = 100; i < 200; ++i) lines += "{\"id\": " + std::to_string(i) + ", \"body\": \"record" + std::to_string(i) + "\"}\n";
  write("r.jsonl", lines);
  const Settings settings{{"path", folder / "r.jsonl"}, {"field", "body"},    {"length", "10"},
                          {"test_share", "0.2"},        {"separator", "\\n"}, {"validation_share", "0.1"}};
  const auto task = make_task("text", settings), again = make_task("text", settings);
  Settings other = settings;
  other["seed"] = "1";
  const auto others = make_task("text", other);
  const auto all = [](const Task& from, Split split) {
    std::string text;
    each_example(from, split, from.size(split), [&](const Batch& batch) {
      for (const std::int64_t byte : batch.tokens) text += char(byte);
    });
    return text;
  };
  EXPECT_EQ(all(*task, Split::test), all(*again, Split::test));
  EXPECT_NE(all(*task, Split::test), all(*others, Split::test));
  // Whole records with what stands between them; no two splits share one.
  std::set<std::string> seen;
  for (const auto& [split, count] : {std::pair{Split::test, 19U}, {Split::validation, 9U}}) {
    const std::string text = all(*task, split);
    EXPECT_EQ(text.size(), 10 * count);
    for (std::size_t i = 0; i < text.size(); i += 10) {
      EXPECT_TRUE(text.substr(i, 10).starts_with("record1") && text[i + 9] == '\n') << text.substr(i, 10);
      seen.insert(text.substr(i, 9));
    }
  }
  EXPECT_EQ(seen.size(), 28U);
  each_example(*task, Split::train, 200, [&](const Batch& batch) {
    const std::string text = text_of(*task, batch.tokens) + task->spell(batch.labels.back());
    const std::size_t begin = text.find("record1");
    EXPECT_FALSE(begin < 3 && seen.contains(text.substr(begin, 9))) << text;
  });
  EXPECT_EQ(error_of("text", {{"path", folder / "r.jsonl"}, {"field", "text"}}),
            (folder / "r.jsonl").string() + ":1: expected a field text, got none; there are id, body");
}

TEST_F(TextTask, ReadsTokensOfATokenizer) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the lowest and the newest ";
  write("text", text);
  const auto tokenizer = train_byte_pairs(std::span(&text, 1), {.vocabulary = 270});
  write("tokenizer.json", tokenizer->to_json());
  const auto task = make_task("text", {{"path", folder / "text"}, {"tokenizer", folder / "tokenizer.json"}, {"length", "16"}});
  EXPECT_EQ(task->shape().vocabulary, tokenizer->vocabulary());
  EXPECT_EQ(task->tokenizer(), tokenizer->to_json());
  EXPECT_FALSE(task->shape().bytes);
  const std::string test = text.substr(text.size() - std::size_t(0.05 * double(text.size())));
  const std::vector<std::int64_t> want = tokenizer->encode(test);
  Batch batch;
  task->fill(Split::test, 0, 1, batch);
  EXPECT_TRUE(std::equal(batch.tokens.begin(), batch.tokens.end(), want.begin()));
  EXPECT_TRUE(std::equal(batch.labels.begin(), batch.labels.end(), want.begin() + 1));
  EXPECT_EQ(task->spell(want[1]), tokenizer->decode({&want[1], 1}));
  EXPECT_EQ(error_of("text", {{"path", folder / "text"}, {"tokenizer", "/nowhere.json"}}),
            "cannot read /nowhere.json: No such file or directory");
  write("words.json", R"({"version": 1, "name": "words", "words": ["a"]})");
  EXPECT_EQ(error_of("text", {{"path", folder / "text"}, {"tokenizer", folder / "words.json"}}),
            "text: expected the tokenizer of a text, got one of words");
}

using ClassifyTask = Files;

TEST_F(ClassifyTask, ReadsRecordsWithTheNamesOfLabels) {
  write("mail.csv", "label,text\nspam,buy\nham,\"hello, you\"\nspam,win it\nham,see\neggs,fry\nham,ok\nspam,now\nham,yes\n");
  const Settings settings{{"path", folder / "mail.csv"}, {"test_share", "0.25"}, {"validation_share", "0.25"}, {"length", "5"}};
  const auto task = make_task("classify", settings);
  EXPECT_EQ(task->shape().labels, (std::vector<std::string>{"eggs", "ham", "spam"}));
  EXPECT_EQ(task->shape().classes, 3);
  EXPECT_EQ(task->size(Split::train), 4U);
  EXPECT_EQ(task->size(Split::test), 2U);
  EXPECT_EQ(task->size(Split::validation), 2U);
  std::multiset<std::string> seen;
  for (const Split split : {Split::train, Split::test, Split::validation})
    each_example(*task, split, task->size(split), [&](const Batch& batch) {
      seen.insert(task->shape().labels[std::size_t(batch.labels[0])] + " " + text_of(*task, batch.tokens));
    });
  EXPECT_EQ(seen, (std::multiset<std::string>{"eggs fry", "ham hello", "ham ok", "ham see", "ham yes", "spam buy", "spam now",
                                              "spam win i"}));
  write("test.csv", "text,label\nfry,eggs\n");
  Settings apart = settings;
  apart["test_path"] = folder / "test.csv";
  apart["validation_share"] = "0";
  const auto other = make_task("classify", apart);
  EXPECT_EQ(other->size(Split::train), 8U);
  EXPECT_EQ(other->size(Split::test), 1U);
  EXPECT_FALSE(other->has_validation());
}

TEST_F(ClassifyTask, SaysWhatIsWrong) {
  const std::string path = folder / "a.csv";
  EXPECT_EQ(error_of("classify", {}), "classify: expected a path, got none");
  write("a.csv", "text,label\na,x\nb,x\n");
  EXPECT_EQ(error_of("classify", {{"path", path}}), "classify: expected at least two labels, got 1");
  EXPECT_EQ(error_of("classify", {{"path", path}, {"label", "class"}}),
            path + ":1: expected a field class, got none; there are text, label");
  write("a.csv", "text,label\na,x\n,y\n");
  EXPECT_EQ(error_of("classify", {{"path", path}}),
            "classify: expected a text for every record, got an empty one with the label y in " + path);
  write("a.csv", "text,label\na,x\nb,y\n");
  EXPECT_EQ(error_of("classify", {{"path", path}}), "classify: expected records for test, got none");
  EXPECT_EQ(error_of("classify", {{"path", path}, {"labels", "x,z"}}), "classify: expected a label of x,z, got y in " + path);
}

struct ImagesTask : Files {
  void SetUp() override {
    Files::SetUp();
    write_pictures(folder, {.rows = 4, .columns = 6, .train_labels = {0, 4, 1}, .test_labels = {2, 3}});
  }
  [[nodiscard]] std::unique_ptr<Task> make(const std::string& as) const {
    return make_task("images", {{"path", folder}, {"as", as}, {"patch", "2"}});
  }
  [[nodiscard]] std::string error() const { return error_of("images", {{"path", folder}, {"patch", "2"}}); }
};

TEST_F(ImagesTask, ComeAsTokensPixelsAndPatches) {
  const auto tokens = make("tokens"), pixels = make("pixels"), patches = make("patches");
  EXPECT_EQ(tokens->size(Split::train), 3U);
  EXPECT_EQ(tokens->size(Split::test), 2U);
  EXPECT_EQ(tokens->shape().classes, 5);
  EXPECT_EQ(tokens->shape().kind, TaskKind::tokens_class);
  EXPECT_EQ(patches->shape().length, 6);
  EXPECT_EQ(patches->shape().features, 4);
  Batch t, x, p;
  tokens->fill(Split::test, 0, 2, t);
  pixels->fill(Split::test, 0, 2, x);
  patches->fill(Split::test, 0, 2, p);
  EXPECT_EQ(t.labels, (std::vector<std::int64_t>{2, 3}));
  for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(t.tokens[std::size_t(i)], i);
  // 0 … 71: mean 35.5, variance (72² − 1) / 12.
  for (std::size_t i = 0; i < 48; ++i) EXPECT_NEAR(x.inputs[i], (double(i) - 35.5) / std::sqrt(5183 / 12.0), 1e-6);
  // The second patch of the second picture: columns 2 and 3 of rows 0 and 1.
  const std::vector<std::size_t> second{24 + 2, 24 + 3, 24 + 8, 24 + 9};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(p.inputs[24 + 4 + i], x.inputs[second[i]]);
}

TEST_F(ImagesTask, SeeEveryPictureInAnEpoch) {
  const auto task = make("tokens");
  std::vector<std::int64_t> first;
  each_example(*task, Split::train, 3, [&](const Batch& batch) { first.push_back(batch.tokens[0]); });
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 24, 48}));
}

TEST_F(ImagesTask, RefuseWhatDoesNotFit) {
  EXPECT_EQ(error_of("images", {{"path", folder}, {"patch", "4"}}), "images: expected a patch that divides 4 × 6 pixels, got 4");
  write("t10k-labels-idx1-ubyte", idx_labels({2, 3, 4}));
  EXPECT_EQ(error(), "images: expected 2 t10k labels, got 3");
  write("t10k-labels-idx1-ubyte", idx_labels({2, 3}));
  write("t10k-images-idx3-ubyte", idx_images(2, 6, 4));
  EXPECT_EQ(error(), "images: expected test images of 4 × 6 pixels, got 6 × 4");
  write("train-images-idx3-ubyte", idx_labels({1, 2, 3}));
  EXPECT_EQ(error(), "images: expected train images with three axes, none empty, got 1 axes or an empty one");
  write("train-images-idx3-ubyte", idx_images(3, 4, 6).substr(0, 40));
  EXPECT_EQ(error(), "cannot read " + (folder / "train-images-idx3-ubyte").string() +
                         ": idx: expected no more numbers than the 24 bytes behind the header");
  fs::remove(folder / "train-images-idx3-ubyte");
  EXPECT_EQ(error(), "cannot read " + (folder / "train-images-idx3-ubyte.gz").string() + ": No such file or directory");
}

struct CifarTask : Files {
  /// Pictures whose red is 2 · row + 4 · column, green 255 − that, and blue anything.
  void write_batch(const std::string& name, const std::string& classes) const {
    std::string all;
    for (const char label : classes) {
      all += label;
      for (const int channel : {0, 1, 2})
        for (int i = 0; i < 1024; ++i) {
          const int red = 2 * (i / 32) + 4 * (i % 32);
          all += char(channel == 0 ? red : channel == 1 ? 255 - red : i % 251);
        }
    }
    write(name, all);
  }
  void SetUp() override {
    Files::SetUp();
    write_batch("data_batch_1.bin", {3, 9});
    write_batch("data_batch_2.bin", {1});
    write_batch("test_batch.bin", {0, 7});
  }
};

TEST_F(CifarTask, AreResampledPatches) {
  const auto task = make_task("cifar", {{"path", folder}, {"side", "64"}, {"patch", "16"}});
  EXPECT_EQ(task->size(Split::train), 3U);
  EXPECT_EQ(make_task("cifar", {{"path", folder}, {"train_examples", "2"}})->size(Split::train), 2U);
  EXPECT_EQ(task->shape().length, 16);
  EXPECT_EQ(task->shape().features, 768);
  Batch batch;
  task->fill(Split::test, 0, 2, batch);
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{0, 7}));
  // A plane stays a plane: pixel (y, x) of 64 lies at ((y + 1/2) / 2 − 1/2, …) of 32. Its deviation over all pixels, its mean 93.
  const double deviation = std::sqrt((4 + 16) * (32.0 * 32 - 1) / 12);
  for (const auto& [y, x] : {std::pair<Index, Index>{1, 1}, {20, 33}, {47, 62}}) {
    const double red = 2 * ((double(y) + 0.5) / 2 - 0.5) + 4 * ((double(x) + 0.5) / 2 - 0.5);
    const Index patch = y / 16 * 4 + x / 16, i = y % 16 * 16 + x % 16;
    EXPECT_NEAR(batch.inputs[std::size_t(768 * patch + i)], (red - 93) / deviation, 1e-5);
    EXPECT_NEAR(batch.inputs[std::size_t(768 * patch + 256 + i)], -(red - 93) / deviation, 1e-5);
  }
}

TEST_F(CifarTask, RefuseWhatDoesNotFit) {
  EXPECT_EQ(error_of("cifar", {}), "cifar: expected path = a folder, got none: tools/models cifar-10 fetches one");
  EXPECT_EQ(error_of("cifar", {{"path", folder}, {"patch", "5"}}), "cifar: expected a patch that divides 32 pixels, got 5");
  write_batch("test_batch.bin", {10});
  EXPECT_EQ(error_of("cifar", {{"path", folder}}), "cifar: expected classes below 10, got 10");
  write("test_batch.bin", "short");
  EXPECT_EQ(error_of("cifar", {{"path", folder}}),
            "cifar: expected records of 3073 bytes in " + (folder / "test_batch.bin").string() + ", got 5 bytes");
  std::filesystem::remove(folder / "test_batch.bin");
  EXPECT_NE(error_of("cifar", {{"path", folder}}).find("cannot read"), std::string::npos);
}

TEST(DefaultFiles, AreReadWhereTheirPackagesAreInstalled) {
  for (const auto& [task, path] :
       {std::pair{"text", "/usr/share/doc/jargon-text/jargon.txt.gz"}, {"images", "/usr/share/datasets/fashion-mnist"}}) {
    if (fs::exists(path)) {
      EXPECT_GT(make_task(task)->size(Split::test), 300U) << task;
    } else {
      EXPECT_NE(error_of(task, {}).find("tools/setup " + std::string(task) + " installs it"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace isomer
