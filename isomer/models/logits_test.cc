// Logits of all tokens: the loss is theirs, and streaming gives the same; the same on the tensors of a file.
#include "isomer/models/logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "isomer/models/model_dsf.h"
#include "isomer/models/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using testing::Data;
using testing::small_config;
using testing::SmallModel;
using tests::error_of;

constexpr Index kBatch = 2, kTokens = 9;
/// The mean over labels that count of log Σ e^z − z_label; rows of `logits` are those of labels.
double cross_entropy(Var<double> logits, const std::vector<std::int64_t>& labels) {
  const Index V = logits.dim(3);
  double sum = 0, count = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0) continue;
    const double* z = logits.value.data + Index(row) * V;
    double all = 0;
    for (Index v = 0; v < V; ++v) all += std::exp(z[v]);
    sum += std::log(all) - z[labels[row]];
    ++count;
  }
  return sum / count;
}

TEST(Logits, HaveTheLossOfTheModel) {
  for (const ModelKind kind :
       {ModelKind::language, ModelKind::classifier, ModelKind::encoder, ModelKind::vision, ModelKind::autoencoder}) {
    ModelConfig config = small_config(kind);
    config.logit_cap = 3;
    SmallModel<double> small(config);
    Data data(config, kBatch, kTokens);
    if (!labels_tokens(kind)) data.lengths = {4, 9};
    Context context(1);
    Tape<double> tape(context, Record::no);
    const double loss = small.model.loss(tape, data.input()).loss;
    ModelInput in = data.input();
    in.labels = {};
    const ModelOutput<double> out = small.model.logits(tape, in);
    EXPECT_EQ(out.hidden.shape(), (Shape4{kBatch, kTokens, 1, config.width})) << name_of(kind);
    EXPECT_EQ(out.logits.shape(), (Shape4{kBatch, labels_tokens(kind) ? kTokens : 1, 1, labels_of(config)})) << name_of(kind);
    EXPECT_NEAR(cross_entropy(out.logits, data.labels), loss, 1e-13) << name_of(kind);
  }
}

TEST(Logits, OfARegressionAreItsOutputs) {
  const ModelConfig config = small_config(ModelKind::regression);
  SmallModel<double> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(1);
  Tape<double> tape(context, Record::no);
  const ModelResult result = small.model.loss(tape, data.input());
  const ModelOutput<double> out = small.model.logits(tape, data.input());
  EXPECT_EQ(out.hidden.shape(), (Shape4{kBatch, kTokens, 1, config.width}));
  ASSERT_EQ(std::size_t(out.logits.value.size()), result.outputs.size());
  for (std::size_t i = 0; i < result.outputs.size(); ++i) EXPECT_NEAR(out.logits.value.data[i], result.outputs[i], 1e-6);
}

TEST(Logits, AreTheSameATokenAtATime) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = testing::hybrid_layers();
  config.positions = true;
  SmallModel<double> small(config);
  const Data data(config, kBatch, kTokens);
  Context context(2);
  Tape<double> tape(context), streaming(context, Record::no);
  const ModelOutput<double> all = small.model.logits(tape, data.input());
  // A token, a stretch of three, and the rest one by one.
  ModelState<double> state = small.model.start(kBatch);
  for (Index t = 0; t < kTokens;) {
    const Index n = t == 1 ? 3 : 1;
    std::vector<std::int64_t> tokens;
    for (Index b = 0; b < kBatch; ++b)
      tokens.insert(tokens.end(), data.tokens.begin() + b * kTokens + t, data.tokens.begin() + b * kTokens + t + n);
    const ModelOutput<double> part = small.model.logits(streaming, tokens, state);
    for (Index b = 0; b < kBatch; ++b)
      for (Index i = 0; i < n; ++i) {
        for (Index d = 0; d < config.width; ++d)
          EXPECT_NEAR(part.hidden.value(b, i, 0, d), all.hidden.value(b, t + i, 0, d), 1e-12);
        for (Index v = 0; v < config.vocabulary; ++v)
          EXPECT_NEAR(part.logits.value(b, i, 0, v), all.logits.value(b, t + i, 0, v), 1e-12);
      }
    t += n;
    EXPECT_EQ(state.positions()[0], t);
    streaming.clear();
  }
  EXPECT_EQ(error_of([&] { (void)small.model.logits(streaming, data.tokens, state); }),
            "model: expected at most 9 tokens (learned positions), got 18");
}

TEST(Logits, NeedTokensOfTheRightNumber) {
  const ModelConfig config = small_config(ModelKind::language);
  SmallModel<double> small(config);
  Context context(1);
  Tape<double> tape(context);
  const std::vector<std::int64_t> tokens(3);
  EXPECT_EQ(error_of([&] { (void)small.model.logits(tape, {.B = 2, .T = 2, .tokens = tokens}); }),
            "model: expected 4 tokens, got 3");
}

template <class T>
Tensor tensor_of(const std::vector<T>& numbers, const std::vector<Index>& shape) {
  Tensor tensor(type_of<T>, shape);
  std::ranges::copy(numbers, tensor.data<T>());
  return tensor;
}

/// A model of a kind, the tensors that it reads, and the same in double.
struct FileCase {
  ModelConfig config;
  SmallModel<double> exact;
  Data data;
  LoadedModel loaded;
  Tensors in;
  Context context{1};

  explicit FileCase(ModelConfig own)
      : config(std::move(own)),
        exact(config),
        data(config, kBatch, kTokens),
        loaded(config, exact.parameters.tensors(), nullptr) {
    const std::vector<Index> rows{kBatch, kTokens};
    if (config.vocabulary > 0)
      in.emplace("tokens", tensor_of(data.tokens, rows));
    else
      in.emplace("inputs", tensor_of(data.inputs, {kBatch, kTokens, config.features}));
    if (config.outputs > 0)
      in.emplace("targets", tensor_of(data.targets, {kBatch, config.outputs}));
    else
      in.emplace("targets", tensor_of(data.labels, labels_tokens(config.kind) ? rows : std::vector<Index>{kBatch}));
  }
  [[nodiscard]] Tensors run(const LogitsOptions& options = {}) { return logits_of(loaded, in, options, context); }
  [[nodiscard]] double exact_loss() {
    Tape<double> tape(context, Record::no);
    return exact.model.loss(tape, data.input()).loss;
  }
  [[nodiscard]] std::string error(const LogitsOptions& options = {}) {
    return error_of([&] { (void)run(options); });
  }
  void put(const char* name, Tensor tensor) { in.insert_or_assign(name, std::move(tensor)); }
};

constexpr std::array kAllKinds{ModelKind::language, ModelKind::classifier, ModelKind::encoder,
                               ModelKind::vision,   ModelKind::regression, ModelKind::autoencoder};

TEST(LogitsOfAFile, HaveTheLossAndGradientsOfTheModel) {
  for (const ModelKind kind : kAllKinds) {
    FileCase one(small_config(kind));
    const Tensors out = one.run({.gradients = true});
    EXPECT_EQ(out.at("hidden").shape(), (std::vector<Index>{kBatch, kTokens, one.config.width})) << name_of(kind);
    const Index labels = labels_of(one.config);
    EXPECT_EQ(out.at("logits").shape(),
              labels_tokens(kind) ? (std::vector<Index>{kBatch, kTokens, labels}) : (std::vector<Index>{kBatch, labels}));
    EXPECT_NEAR(out.at("loss").data<float>()[0], one.exact_loss(), 1e-5) << name_of(kind);
    // Central differences of the same loss in double, at a few numbers of every weight.
    for (const Parameter<double>& p : one.exact.parameters.all()) {
      const Tensor& gradient = out.at("grad." + p.name());
      ASSERT_EQ(gradient.shape(), p.spec.shape) << p.name();
      if (!p.trained()) continue;
      for (std::size_t i = 0; i < p.values().size(); i += std::max<std::size_t>(1, p.values().size() / 3)) {
        const double step = 1e-5, before = p.values()[i];
        p.values()[i] = before + step;
        const double above = one.exact_loss();
        p.values()[i] = before - step;
        const double slope = (above - one.exact_loss()) / (2 * step);
        p.values()[i] = before;
        EXPECT_NEAR(gradient.data<float>()[i], slope, 1e-4 * (1 + std::abs(slope))) << name_of(kind) << " " << p.name();
      }
    }
    EXPECT_EQ(out.size(), 3 + one.exact.parameters.all().size());
  }
}

TEST(LogitsOfAFile, AreTheSameAsAStream) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = testing::hybrid_layers();
  FileCase one(config);
  const Tensors batch = one.run(), stream = one.run({.stream = true});
  ASSERT_EQ(batch.size(), 3U);
  for (const auto& [name, want] : batch) {
    ASSERT_EQ(stream.at(name).shape(), want.shape()) << name;
    for (Index i = 0; i < want.size(); ++i) EXPECT_NEAR(stream.at(name).data<float>()[i], want.data<float>()[i], 2e-5) << name;
  }
  one.in.erase("targets");
  EXPECT_EQ(one.run({.stream = true}).size(), 2U) << "no loss without targets";
}

TEST(LogitsOfAFile, OfPackedSequencesAreThoseOfEach) {
  ModelConfig config = small_config(ModelKind::language);
  config.layers = testing::hybrid_layers();
  config.positions = true;
  FileCase one(config);
  // Four sequences of 4, 0, 5 and 9 tokens, one of them empty.
  one.put("tokens", tensor_of(one.data.tokens, {1, kBatch * kTokens}));
  one.put("targets", tensor_of(one.data.labels, {1, kBatch * kTokens}));
  const std::vector<std::int64_t> offsets{0, 4, 4, 9, 18};
  one.put("offsets", tensor_of(offsets, {5}));
  const Tensors packed = one.run({.gradients = true}), stream = one.run({.stream = true});
  EXPECT_EQ(packed.at("logits").shape(), (std::vector<Index>{1, 18, config.vocabulary}));
  EXPECT_NEAR(stream.at("loss").data<float>()[0], packed.at("loss").data<float>()[0], 2e-5);
  EXPECT_TRUE(packed.contains("grad.embedding.weight"));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const Index begin = offsets[i], length = offsets[i + 1] - begin;
    if (length == 0) continue;
    const std::vector<std::int64_t> own(one.data.tokens.begin() + begin, one.data.tokens.begin() + begin + length);
    const Tensors in = [&] {
      Tensors tensors;
      tensors.emplace("tokens", tensor_of(own, {1, length}));
      return tensors;
    }();
    const Tensors alone = logits_of(one.loaded, in, {}, one.context);
    for (const char* name : {"hidden", "logits"}) {
      const Index D = alone.at(name).shape()[2];
      for (Index x = 0; x < length * D; ++x) {
        const float want = alone.at(name).data<float>()[x];
        EXPECT_NEAR(packed.at(name).data<float>()[begin * D + x], want, 2e-5) << name << " of sequence " << i;
        EXPECT_NEAR(stream.at(name).data<float>()[begin * D + x], want, 2e-5) << name << " of sequence " << i;
      }
    }
  }
}

TEST(LogitsOfAFile, ShowWhatEachLayerAttendsTo) {
  FileCase one(testing::hybrid_config(kTokens));
  const std::vector<ModelLaw> laws = laws_of(one.loaded, one.data.input(), one.context);
  EXPECT_GE(laws.size(), one.config.layers.size());
  const Tensors out = one.run({.attention = true});
  std::set<Index> layers;
  for (const ModelLaw& law : laws) {
    // The matrices are those of the very laws: they give their outputs.
    EXPECT_LE(dsf_error(law.call), 1e-9) << law.layer;
    layers.insert(law.layer);
    const Tensor& all = out.at("attention.layers." + std::to_string(law.layer) + ".nodes." + std::to_string(law.call.node));
    const auto heads = Index(dsf_views(law.call).size());
    EXPECT_EQ(all.shape(), (std::vector<Index>{kBatch, heads, kTokens, kTokens}));
    const View<const float, 4> m = all.view<const float, 4>();
    for (Index b = 0; b < kBatch; ++b) {
      const std::vector<DsfView> views = dsf_views(law.call, b);
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < kTokens; ++t) {
          double sum = 0;
          for (Index s = 0; s < kTokens; ++s) {
            sum += m(b, h, t, s);
            EXPECT_EQ(m(b, h, t, s), float(views[std::size_t(h)].weights[std::size_t(t * kTokens + s)]));
            EXPECT_TRUE(s <= t || m(b, h, t, s) == 0);
          }
          EXPECT_TRUE(one.config.layers[std::size_t(law.layer)].preset != "softmax" || std::abs(sum - 1) < 1e-5) << sum;
        }
    }
  }
  EXPECT_EQ(layers.size(), one.config.layers.size());
  FileCase encoder(small_config(ModelKind::encoder));
  EXPECT_EQ(encoder.error({.attention = true}), "model: expected causal layers, got softmax of whole sequences in layer 0");
}

TEST(LogitsOfAFile, ShowWhatAStreamRemembers) {
  FileCase one(testing::hybrid_config(kTokens));
  const Tensors out = one.run({.stream = true, .states = true});
  Tape<float> tape(one.context, Record::no);
  ModelState<float> state = one.loaded.model.start(kBatch);
  (void)one.loaded.model.prefill(tape, one.data.tokens, state);
  std::size_t states = 0;
  for (const auto& [name, tensor] : state.tensors()) {
    const Tensor& got = out.at("state." + name);
    EXPECT_EQ(got.shape(), tensor.shape()) << name;
    EXPECT_EQ(std::memcmp(got.bytes(), tensor.bytes(), std::size_t(tensor.size() * bytes_of(tensor.type()))), 0) << name;
    ++states;
  }
  EXPECT_EQ(out.size(), states + 3) << "with hidden, logits and loss";
  FileCase classifier(small_config(ModelKind::classifier));
  EXPECT_EQ(classifier.error({.states = true}), "model: expected a language model to stream, got one of kind classifier");
}

TEST(LogitsOfAFile, LeaveOutPadding) {
  FileCase one(small_config(ModelKind::classifier));
  one.data.lengths = {4, 9};
  one.put("mask", tensor_of<std::int64_t>({1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {kBatch, kTokens}));
  EXPECT_NEAR(one.run().at("loss").data<float>()[0], one.exact_loss(), 1e-5);
}

TEST(LogitsOfAFile, CutPicturesIntoSquares) {
  ModelConfig config = small_config(ModelKind::vision);
  config.features = 8;  // two channels of 2 × 2
  FileCase one(config);
  // Three squares in a row, three rows.
  Tensor pixels(Type::f32, {kBatch, 2, 6, 6});
  const View<float, 4> view = pixels.view<float, 4>();
  for (Index b = 0; b < kBatch; ++b)
    for (Index t = 0; t < 9; ++t)
      for (Index i = 0; i < 8; ++i)
        view(b, i / 4, t / 3 * 2 + i % 4 / 2, t % 3 * 2 + i % 2) = one.data.inputs[std::size_t((b * 9 + t) * 8 + i)];
  const Tensors want = one.run();
  one.in.erase("inputs");
  one.put("pixels", std::move(pixels));
  const Tensors got = one.run();
  EXPECT_TRUE(std::equal(want.at("logits").data<float>(), want.at("logits").data<float>() + want.at("logits").size(),
                         got.at("logits").data<float>()));
}

TEST(LogitsOfAFile, RefusePicturesThatPositionsAreNotFor) {
  ModelConfig config = small_config(ModelKind::vision);
  config.features = 4, config.positions = true;  // 3 x 3 squares of 2 x 2, or some rectangle
  for (const auto& [length, size] : {std::pair{9, "6 x 6 pixels, got "}, {6, "6 squares, got "}}) {
    config.length = length;
    FileCase one(config);
    one.in.erase("inputs");
    for (const auto& [H, W] : {std::pair{4, 4}, {6, 6}, {4, 6}, {2, 18}, {8, 8}}) {
      one.put("pixels", tensor_of(std::vector<float>(std::size_t(kBatch * H * W)), {kBatch, 1, H, W}));
      const std::string got = length == 9 ? std::to_string(H) + " x " + std::to_string(W) : std::to_string(H * W / 4);
      const bool fits = length == 9 ? H == 6 && W == 6 : H * W == 24;
      EXPECT_EQ(one.error(), fits ? "no error" : "pixels: expected pictures of " + (size + got));
    }
    one.in.erase("pixels");
    one.put("inputs", tensor_of<float>({1, 2, 3, std::nanf("")}, {1, 1, 4}));
    EXPECT_EQ(one.error(), "inputs: expected numbers, got nan");
  }
}

TEST(LogitsOfAFile, RefuseOtherTensors) {
  FileCase language(small_config(ModelKind::language));
  EXPECT_EQ(language.error({.stream = true, .gradients = true}), "logits: expected gradients of a batch, got a stream");
  language.put("targets", tensor_of<std::int64_t>(std::vector<std::int64_t>(18, -1), {2, 9}));
  EXPECT_EQ(language.error(), "targets: expected labels from 0 to 10 or -100, got -1");
  language.put("targets", tensor_of<std::int64_t>({1, 2}, {2}));
  EXPECT_EQ(language.error(), "targets: expected I64 [B, T], got I64 [2]");
  language.put("targets", tensor_of<std::int64_t>({1, 2}, {2, 1}));
  EXPECT_EQ(language.error(), "targets: expected [2, 9], got [2, 1]");
  language.in.erase("targets");
  EXPECT_EQ(language.error({.gradients = true}), "logits: expected targets to take gradients of their loss, found none");
  language.put("mask", Tensor(Type::i64, {2, 9}));
  EXPECT_EQ(language.error(), "logits: a language model reads no mask");
  language.in.erase("mask");
  language.put("tokens", tensor_of<std::int64_t>({1, 11}, {1, 2}));
  EXPECT_EQ(language.error(), "tokens: expected tokens from 0 to 10, got 11");
  language.put("tokens", tensor_of<float>({1, 2}, {1, 2}));
  EXPECT_EQ(language.error(), "tokens: expected I64 [B, T], got F32 [1, 2]");
  language.put("tokens", Tensor(Type::i64, {0, 2}));
  EXPECT_EQ(language.error({.stream = true}), "tokens: expected at least one token, got 0 sequences of 2");
  EXPECT_EQ(language.error(), "model: expected at least one token, got 0 sequences of 2");
  language.in.erase("tokens");
  EXPECT_EQ(language.error(), "tokens: expected I64 [B, T], found none");
  FileCase packed(small_config(ModelKind::language));
  packed.put("offsets", tensor_of<std::int64_t>({0, 9}, {2}));
  EXPECT_EQ(packed.error(), "offsets: expected B = 1 with offsets, got 2");
  packed.in.erase("targets");
  packed.put("tokens", tensor_of<std::int64_t>({1, 2, 3}, {1, 3}));
  EXPECT_EQ(packed.error(), "offsets: expected offsets from 0 to T = 3, got 0 to 9");
  packed.put("offsets", tensor_of<std::int64_t>({0, 2, 1, 3}, {4}));
  EXPECT_EQ(packed.error(), "offsets: expected offsets that never decrease, got 2 before 1");
  packed.put("offsets", tensor_of<std::int64_t>({0}, {1}));
  EXPECT_EQ(packed.error(), "offsets: expected those of at least one sequence, got [1]");
  packed.put("offsets", tensor_of<std::int64_t>({0, 3}, {1, 2}));
  EXPECT_EQ(packed.error(), "offsets: expected I64 [n + 1], got I64 [1, 2]");

  FileCase encoder(small_config(ModelKind::encoder));
  EXPECT_EQ(encoder.error({.stream = true}), "logits: expected a language model to stream, got one of kind encoder");
  encoder.put("mask", tensor_of<std::int64_t>({1, 0, 1}, {1, 3}));
  EXPECT_EQ(encoder.error(), "mask: expected [2, 9], got [1, 3]");
  std::vector<std::int64_t> mask(18, 1);
  mask[12] = 0;
  encoder.put("mask", tensor_of(mask, {2, 9}));
  EXPECT_EQ(encoder.error(), "mask: expected at least one 1 and then 0 up to the end of each sequence, got others in 1");

  FileCase vision(small_config(ModelKind::vision));
  vision.put("pixels", Tensor(Type::f32, {2, 1, 4, 4}));
  EXPECT_EQ(vision.error(), "logits: expected pixels or inputs, got both");
  vision.in.erase("inputs");
  EXPECT_EQ(vision.error(), "pixels: expected channels whose squares have 11 numbers, got 1 channels");
  ModelConfig squares = small_config(ModelKind::vision);
  squares.features = 4;
  FileCase cut(squares);
  cut.in.erase("inputs");
  cut.put("pixels", Tensor(Type::f32, {2, 1, 4, 5}));
  EXPECT_EQ(cut.error(), "pixels: expected a height and width that 2 divides, got 4 and 5");
  cut.in.erase("pixels");
  cut.put("inputs", Tensor(Type::f32, {2, 9, 5}));
  EXPECT_EQ(cut.error(), "inputs: expected vectors of 4 numbers, got 5");
}

TEST(LogitsOfAFile, NeedATargetThatCounts) {
  FileCase language(small_config(ModelKind::language));
  language.put("targets", tensor_of<std::int64_t>(std::vector<std::int64_t>(18, -100), {2, 9}));
  EXPECT_EQ(language.error(), "targets: expected at least one that counts, got -100 everywhere");
}

}  // namespace
}  // namespace isomer
