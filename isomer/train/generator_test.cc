#include "isomer/train/generator.h"

#include <gtest/gtest.h>

#include <limits>

#include "isomer/io/safetensors.h"
#include "isomer/io/text.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/saved_state.h"
#include "isomer/models/testing.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using Tokens = std::vector<std::int64_t>;
using tests::error_of;

constexpr Index kPositions = 64;

/// Layers of all laws, two of which share values, with learned positions.
std::unique_ptr<LoadedModel> hybrid(std::uint64_t seed = 1, Type storage = Type::f32) {
  const testing::SmallModel<float> small(testing::hybrid_config(kPositions), seed);
  const Tensors weights = small.parameters.tensors();
  return std::make_unique<LoadedModel>(small.model.config(), views_of(weights), number_tokenizer(11), storage);
}

/// `steps` tokens of each sequence.
std::vector<Tokens> go_on(Generator& generator, int steps) {
  std::vector<Tokens> all(std::size_t(generator.sequences()));
  for (int i = 0; i < steps; ++i) {
    const std::span<const std::int64_t> next = generator.next();
    for (std::size_t k = 0; k < next.size(); ++k) all[k].push_back(next[k]);
  }
  return all;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Generating : ::testing::Test {
  std::unique_ptr<LoadedModel> model = hybrid();
  Context context{2};
  tests::TemporaryFolder folder;
  std::string path = folder.path / "state.safetensors";

  [[nodiscard]] Generator start(std::uint64_t seed = 7) { return Generator(*model, {.top_p = 0.9}, seed, context); }
  [[nodiscard]] Tokens alone(const Tokens& prompt, std::uint64_t seed, int steps) {
    Generator generator = start(seed);
    generator.read({prompt});
    return go_on(generator, steps)[0];
  }
};

TEST_F(Generating, ManySequencesSayWhatEachWouldSayAlone) {
  // More than run together, at different positions.
  std::vector<Tokens> prompts;
  for (std::int64_t i = 0; i < 11; ++i) prompts.emplace_back(std::size_t(1 + i * 2), i);
  for (const int threads : {1, 2, 7}) {
    Context other(threads);
    Generator all(*model, {.top_p = 0.9}, 7, other);
    all.read(prompts);
    const std::vector<Tokens> got = go_on(all, 20);
    for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(got[i], alone(prompts[i], 7 + i, 20)) << i;
  }
}

TEST_F(Generating, ManySequencesSayTheSameWithAnyMixer) {
  const std::vector<Tokens> prompts{{1, 2, 3}, {4}, {5, 6}, {7, 8, 9, 1, 2}, {3}, {2, 2}, {1}};
  for (const Preset* preset : presets()) {
    ModelConfig config{.kind = ModelKind::language, .width = 16, .layers = {{std::string(preset->name)}}, .vocabulary = 11};
    if (!graph::causal(layer_graph(config, 0))) continue;
    const testing::SmallModel<float> small(config);
    const LoadedModel own(config, small.parameters.tensors(), number_tokenizer(11));
    Generator all(own, {}, 3, context);
    all.read(prompts);
    const std::vector<Tokens> got = go_on(all, 12);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      Generator one(own, {}, 3 + i, context);
      one.read({prompts[i]});
      EXPECT_EQ(go_on(one, 12)[0], got[i]) << preset->name << " " << i;
    }
  }
}

TEST_F(Generating, GoesOnFromItsFileAsIfNothingHadBeenBetween) {
  const std::vector<Tokens> prompts{{1, 2, 3}, {4}};
  Generator whole = start(), first = start();
  whole.read(prompts);
  first.read(prompts);
  const std::vector<Tokens> want = go_on(whole, 20), before = go_on(first, 8);
  first.save(path);
  Generator second = start();
  second.load(path);
  EXPECT_EQ(second.sequences(), 2);
  const std::vector<Tokens> after = go_on(second, 12);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(joined(before[i], after[i]), want[i]);
  // The file of a prompt alone.
  Generator prompt = start();
  prompt.read({{5, 6, 7}});
  prompt.save(path);
  Generator later = start();
  later.load(path);
  EXPECT_EQ(go_on(later, 10)[0], alone({5, 6, 7}, 7, 10));
}

TEST_F(Generating, ForksOneSequenceIntoSeveral) {
  Generator generator = start();
  generator.read({{5, 6, 7}});
  generator.save(path);
  Generator forks = start();
  forks.load(path);
  forks.read({{1}, {}, {2, 3}});
  ASSERT_EQ(forks.sequences(), 3);
  EXPECT_EQ(forks.room(), kPositions - 5);
  const std::vector<Tokens> got = go_on(forks, 9);
  EXPECT_EQ(got[0], alone({5, 6, 7, 1}, 7, 9));
  EXPECT_EQ(got[1], alone({5, 6, 7}, 8, 9));
  EXPECT_EQ(got[2], alone({5, 6, 7, 2, 3}, 9, 9));
  EXPECT_EQ(error_of([&] { forks.read({{1}, {2}}); }), "prompts: expected one for each of 3 sequences, got 2");
}

TEST_F(Generating, RefusesWhatIsMissing) {
  Generator generator = start();
  EXPECT_EQ(error_of([&] { generator.read({}); }), "prompts: expected at least one, got none");
  EXPECT_EQ(error_of([&] { generator.save(path); }), "state: expected one that has read something, got none");
  generator.read({{}});
  EXPECT_EQ(error_of([&] { (void)generator.next(); }), "prompts: expected at least one token, got none");
  const testing::SmallModel<float> small(testing::small_config(ModelKind::classifier));
  const LoadedModel other(small.model.config(), small.parameters.tensors(), number_tokenizer(11));
  EXPECT_EQ(error_of([&] { (void)Generator(other, {}, 1, context); }), "expected a language model, got a classifier");
}

TEST_F(Generating, RefusesStatesOfOtherWeights) {
  Generator generator = start();
  generator.read({{1, 2}});
  generator.save(path);
  for (const auto& other : {hybrid(2), hybrid(1, Type::bf16)}) {
    const std::string error = error_of([&] { Generator(*other, {}, 1, context).load(path); });
    EXPECT_EQ(error, "cannot load " + path + ": expected a state of the weights " + other->parameters.fingerprint() +
                         ", which are the model's, got one of " + model->parameters.fingerprint());
  }
  EXPECT_EQ(hybrid()->parameters.fingerprint(), model->parameters.fingerprint());
}

TEST_F(Generating, RefusesDamagedFiles) {
  Generator generator = start();
  generator.read({{1, 2, 3}});
  generator.save(path);
  const std::string whole = read_text(path);
  const auto problem = [&] {
    Generator other = start();
    return error_of([&] { other.load(path); });
  };
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    write_text(path, whole.substr(0, size));
    EXPECT_TRUE(problem().starts_with("cannot ")) << size << ": " << problem();
  }
  const auto with = [&](const std::string& name, const auto& change) {
    write_text(path, whole);
    SafetensorsFile changed = read_safetensors_file(path);
    change(changed.tensors.at(name));
    write_safetensors(path, changed.tensors, changed.metadata);
    return problem();
  };
  const std::string begin = "cannot load " + path + ": ";
  EXPECT_EQ(with("logits", [](Tensor& t) { t.data<float>()[3] = std::numeric_limits<float>::quiet_NaN(); }),
            begin + "state: expected numbers, got NaN in logits");
  EXPECT_EQ(with("logits",
                 [](Tensor& t) {
                   t = Tensor(Type::f32, {1, 5});
                   std::fill_n(t.data<float>(), 5, 0.0f);
                 }),
            begin + "state: expected logits of 11 labels, got 5");
  EXPECT_EQ(with("logits",
                 [](Tensor& t) {
                   t = Tensor(Type::i64, {1, 11});
                 }),
            begin + "state: expected logits F32 [1, labels], got I64 [1, 11]");
  EXPECT_EQ(with("layers.0.positions", [](Tensor& t) { t.data<std::int64_t>()[0] = std::numeric_limits<std::int64_t>::max(); }),
            begin + "state: expected positions from 0 to 281474976710656, got 9223372036854775807");
  EXPECT_EQ(with("layers.0.positions", [](Tensor& t) { t.data<std::int64_t>()[0] = 2; }),
            begin + "state: expected 2 tokens in every layer, got 3");
  EXPECT_TRUE(with("layers.0.batch", [](Tensor& t) {
                t.data<std::int64_t>()[0] = std::int64_t{1} << 60;
              }).starts_with(begin + "state: expected the numbers of 1152921504606846976 sequences, got "));
  write_text(path, whole);
  SafetensorsFile file = read_safetensors_file(path);
  file.metadata["drawn"] = "many";
  write_safetensors(path, file.tensors, file.metadata);
  EXPECT_EQ(problem(), begin + "expected a number of tokens drawn, got many");
  file.metadata.erase("weights");
  write_safetensors(path, file.tensors, file.metadata);
  EXPECT_TRUE(problem().ends_with(", got one of unknown weights")) << problem();
}

TEST_F(Generating, ChecksEveryLengthOfAttention) {
  Generator generator = start();
  generator.read({{1, 2, 3}});
  generator.save(path);
  SafetensorsFile file = read_safetensors_file(path);
  int lengths = 0;
  for (auto& [name, tensor] : file.tensors) {
    if (!name.ends_with(".length")) continue;
    ++lengths;
    tensor.data<std::int64_t>()[0] = std::numeric_limits<std::int64_t>::max();
    write_safetensors(path, file.tensors, file.metadata);
    EXPECT_NE(error_of([&] { Generator(*model, {}, 1, context).load(path); }).find("expected a length from 0 to "),
              std::string::npos);
    tensor.data<std::int64_t>()[0] = 3;
  }
  EXPECT_GE(lengths, 2);
}

}  // namespace
}  // namespace isomer
