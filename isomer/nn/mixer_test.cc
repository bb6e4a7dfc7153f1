// What holds for every preset: streaming is forward cut in pieces, states can be forked and saved, gradients are slopes, threads
// change nothing, and no token sees a later one.
#include "isomer/nn/mixer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "isomer/base/rng.h"
#include "isomer/laws/check.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"

namespace isomer {
namespace {
constexpr Index kWidth = 16, kTokens = 13, kBatch = 2;

/// A mixer with parameters away from their starts, so that nothing is zero by chance, and an input.
template <class T>
struct Layer {
  Parameters<T> parameters;
  Mixer<T> mixer;
  std::vector<T> x = std::vector<T>(std::size_t(kBatch * kTokens * kWidth)), some;

  explicit Layer(graph::Graph graph) : mixer(std::move(graph), parameters, "mixer") {
    initialise(parameters, 1);
    Rng rng(2);
    for (const Parameter<T>& p : parameters.all())
      if (p.trained())
        for (T& value : p.values()) value += T(0.2 * rng.normal());
    for (T& value : x) value = T(rng.normal());
  }
  [[nodiscard]] View<T, 4> all() { return contiguous(x.data(), {kBatch, kTokens, 1, kWidth}); }
  /// A dense copy of some tokens, valid until the next call.
  [[nodiscard]] View<T, 4> tokens(Index begin, Index count) {
    some.assign(std::size_t(kBatch * count * kWidth + 1), T(0));
    for (Index b = 0; b < kBatch; ++b) std::copy_n(all().at(b, begin), count * kWidth, some.begin() + b * count * kWidth);
    return contiguous(some.data(), {kBatch, count, 1, kWidth});
  }
};

graph::Graph graph_of(const Preset& preset) {
  const Place place{.width = kWidth};
  Settings settings;
  for (const MixerOption& option : options_of(preset, place))
    if (option.name == "heads") settings["heads"] = "2";
  return build_mixer(preset, place, settings);
}

template <class T>
std::vector<T> numbers(View<T, 4> y) {
  std::vector<T> all;
  for (Index b = 0; b < y.shape[0]; ++b)
    for (Index t = 0; t < y.shape[1]; ++t)
      for (Index d = 0; d < y.shape[3]; ++d) all.push_back(y(b, t, 0, d));
  return all;
}

template <class T>
std::vector<T> forward(Layer<T>& layer, Context& context) {
  Tape<T> tape(context, Record::no);
  return numbers(layer.mixer.forward(tape, tape.input(layer.all())).value);
}

/// The largest difference over the largest number wanted.
template <class T>
double distance(const std::vector<T>& got, const std::vector<T>& want) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(double(got[i]) - double(want[i]));
    worst = d <= worst ? worst : d;  // a NaN sticks
    largest = std::max(largest, std::abs(double(want[i])));
  }
  EXPECT_EQ(got.size(), want.size());
  EXPECT_GT(largest, 0);
  return worst / largest;
}

class EveryPreset : public ::testing::TestWithParam<const Preset*> {
 protected:
  Context context_{1};
  /// False, and the test is skipped, for a mixer of whole sequences.
  bool causal() {
    if (graph::causal(graph_of(*GetParam()))) return true;
    ADD_FAILURE() << "a preset is causal by default";
    return false;
  }
};
std::string test_name(const ::testing::TestParamInfo<const Preset*>& preset) {
  std::string name(preset.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Mixer, EveryPreset, ::testing::ValuesIn(presets().begin(), presets().end()), test_name);

template <class T>
void expect_streaming(const Preset& preset, double limit, Context& context) {
  Layer<T> layer(graph_of(preset));
  const std::vector<T> want = forward(layer, context);
  Tape<T> tape(context, Record::no);
  for (Index split = 0; split <= kTokens; ++split) {
    MixerState<T> state = layer.mixer.start(kBatch);
    std::vector<T> got(want.size());
    const auto put = [&](Var<T> y, Index begin) {
      for (Index b = 0; b < kBatch; ++b)
        for (Index t = 0; t < y.dim(1); ++t)
          std::copy_n(y.value.at(b, t), kWidth, got.begin() + (b * kTokens + begin + t) * kWidth);
      tape.clear();
    };
    put(layer.mixer.prefill(tape, tape.input(layer.tokens(0, split)), state), 0);
    // Behind every other prompt comes a second one, of two tokens.
    const Index second = split % 2 == 0 && split + 2 <= kTokens ? 2 : 0;
    put(layer.mixer.prefill(tape, tape.input(layer.tokens(split, second)), state), split);
    for (Index t = split + second; t < kTokens; ++t) put(layer.mixer.step(tape, tape.input(layer.tokens(t, 1)), state), t);
    EXPECT_EQ(state.position(), kTokens);
    EXPECT_LE(distance(got, want), limit) << "cut at " << split;
  }
}

TEST_P(EveryPreset, StreamsAsItTrains) {
  ASSERT_TRUE(causal());
  expect_streaming<double>(*GetParam(), 1e-12, context_);
  expect_streaming<float>(*GetParam(), 64 * 0x1p-23, context_);
}

TEST_P(EveryPreset, HasAStateThatCanBeForkedAndSaved) {
  ASSERT_TRUE(causal());
  Layer<float> layer(graph_of(*GetParam()));
  Tape<float> tape(context_, Record::no);
  MixerState<float> state = layer.mixer.start(kBatch);
  (void)layer.mixer.prefill(tape, tape.input(layer.tokens(0, 7)), state);
  EXPECT_GT(state.bytes(), 0);
  const std::string path = ::testing::TempDir() + "isomer_mixer_state_" + std::string(GetParam()->name) + ".safetensors";
  state.save(path);
  MixerState<float> fork = state, loaded = layer.mixer.load(path);
  EXPECT_EQ(loaded.bytes(), state.bytes());
  EXPECT_EQ(loaded.position(), 7);
  (void)layer.mixer.step(tape, tape.input(layer.tokens(3, 1)), fork);  // goes its own way
  const auto rest = [&](MixerState<float>& from) {
    return numbers(layer.mixer.prefill(tape, tape.input(layer.tokens(7, 6)), from).value);
  };
  const std::vector<float> want = rest(state);
  EXPECT_EQ(rest(loaded), want);
  EXPECT_NE(rest(fork), want);
  std::remove(path.c_str());
}

struct Part {
  std::string name;
  std::span<double> values;
  std::span<const double> gradient;
};

/// Along random directions of all parameters and the input, and element by element for the small ones.
TEST_P(EveryPreset, HasTheGradientsOfItsEquations) {
  Layer<double> layer(graph_of(*GetParam()));
  std::vector<double> seed(std::size_t(kBatch * kTokens * kWidth));
  Rng rng(3);
  for (double& s : seed) s = rng.normal();
  const auto value = [&] {
    const std::vector<double> y = forward(layer, context_);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * seed[i];
    return sum;
  };
  Tape<double> tape(context_);
  const Var<double> x = tape.input(layer.all(), true);
  const View<double, 4> up = tape.seed(layer.mixer.forward(tape, x));
  std::copy(seed.begin(), seed.end(), up.data);
  tape.backward();

  std::vector<Part> parts{{"x", layer.x, {tape.arrived(x).data, layer.x.size()}}};
  for (const Parameter<double>& p : layer.parameters.all())
    if (p.trained()) parts.push_back({p.name(), p.values(), p.gradient()});
  double largest = 0;
  for (const Part& part : parts) {
    EXPECT_EQ(part.gradient.size(), part.values.size()) << part.name << " has a gradient";
    for (const double g : part.gradient) largest = std::max(largest, std::abs(g));
  }
  const auto slope = [&](const auto& move) {
    constexpr double kStep = 1e-5;
    move(kStep);
    const double high = value();
    move(-2 * kStep);
    const double low = value();
    move(kStep);
    return (high - low) / (2 * kStep);
  };
  for (const Part& part : parts) {
    for (int trial = 0; trial < 2 && !part.gradient.empty(); ++trial) {
      std::vector<double> direction(part.values.size());
      double want = 0, scale = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        direction[i] = rng.normal();
        want += direction[i] * part.gradient[i];
        scale += part.gradient[i] * part.gradient[i];
      }
      const std::vector<double> before(part.values.begin(), part.values.end());
      const double got = slope([&](double h) {
        for (std::size_t i = 0; i < direction.size(); ++i) part.values[i] += h * direction[i];
      });
      std::ranges::copy(before, part.values.begin());
      EXPECT_LE(std::abs(got - want), 1e-6 * std::max(std::sqrt(scale), largest)) << part.name;
    }
    if (part.values.size() > 8) continue;
    for (std::size_t i = 0; i < part.gradient.size(); ++i) {
      const double got = slope([&](double h) { part.values[i] += h; });
      EXPECT_LE(std::abs(got - part.gradient[i]), 1e-6 * largest) << part.name << " " << i;
    }
  }
}

TEST_P(EveryPreset, IsTheSameOnAnyNumberOfThreads) {
  Layer<float> layer(graph_of(*GetParam()));
  Context two(2);
  EXPECT_EQ(forward(layer, context_), forward(layer, two));
}

TEST_P(EveryPreset, SeesNoLaterToken) {
  ASSERT_TRUE(causal());
  Layer<float> layer(graph_of(*GetParam()));
  const std::vector<float> want = forward(layer, context_);
  for (const Index t : {Index(0), Index(6), kTokens - 1}) {
    Layer<float> other(graph_of(*GetParam()));
    for (Index d = 0; d < kWidth; ++d) other.all()(1, t, 0, d) += 0.5f;
    const std::vector<float> got = forward(other, context_);
    const auto begin = std::ptrdiff_t((kTokens + t) * kWidth);
    EXPECT_TRUE(std::equal(want.begin(), want.begin() + begin, got.begin())) << "token " << t;
    EXPECT_FALSE(std::equal(want.begin() + begin, want.begin() + begin + kWidth, got.begin() + begin)) << "token " << t;
  }
}

TEST_P(EveryPreset, IsMadeOfLawsOnNamedTensors) {
  Layer<double> layer(graph_of(*GetParam()));
  Tape<double> tape(context_, Record::no);
  const std::vector<LawCall> calls = layer.mixer.law_calls(tape, tape.input(layer.all()));
  EXPECT_FALSE(calls.empty());
  for (const LawCall& call : calls) {
    const Tensors got = apply(find_law(call.law), {call.inputs, call.settings, Form::reference, context_});
    for (const auto& [name, want] : call.outputs) EXPECT_LE(relative_error(got.at(name), want), 1e-12) << call.law << " " << name;
  }
}

TEST(Mixer, AllocatesNothingAfterTheFirstStep) {
  Layer<float> layer(graph_of(find_preset("gla")));
  Context context(1);
  Tape<float> tape(context);
  const float* first = nullptr;
  for (int step = 0; step < 4; ++step) {
    layer.parameters.zero_gradients();
    const Var<float> y = layer.mixer.forward(tape, tape.input(layer.all()));
    tape.backward(y);
    if (step == 2) first = y.value.data;
    EXPECT_EQ(y.value.data, step > 2 ? first : y.value.data);
    tape.clear();
  }
}

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MixerState, OfAnotherMixerOrVersionOrADamagedFileIsRefused) {
  const std::string path = ::testing::TempDir() + "isomer_mixer_state_test.safetensors";
  Layer<float> gla(graph_of(find_preset("gla")));
  Layer<float> other(build_mixer("gla", {.width = kWidth}, {{"heads", "4"}}));
  gla.mixer.start(1).save(path);
  EXPECT_EQ(gla.mixer.load(path).batch(), 1);
  const std::string another = error_of([&] { (void)other.mixer.load(path); });
  EXPECT_TRUE(another.find("expected one of the mixer gla-") != std::string::npos) << another;
  const auto rewrite = [&](const char* from, const char* to) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, std::string(from).size(), to);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  rewrite("\"version\":\"1\"", "\"version\":\"2\"");
  const std::string newer = error_of([&] { (void)gla.mixer.load(path); });
  EXPECT_TRUE(newer.ends_with("state: expected version 1, got 2")) << newer;
  gla.mixer.start(2).save(path);
  rewrite("\"dtype\":\"F32\",\"shape\":[2,2,4,8]", "\"dtype\":\"F32\",\"shape\":[2,2,8,4]");
  const std::string shape = error_of([&] { (void)gla.mixer.load(path); });
  EXPECT_TRUE(shape.find(", got [2, 2, 8, 4]") != std::string::npos) << shape;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  in.close();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() - 5);
  EXPECT_TRUE(error_of([&] { (void)gla.mixer.load(path); }).starts_with("cannot read " + path));
  std::remove(path.c_str());
  EXPECT_TRUE(error_of([&] { (void)gla.mixer.load(path); }).starts_with("cannot read " + path));
}

TEST(Mixer, RefusesWhatItCannotRun) {
  Layer<float> layer(graph_of(find_preset("gla")));
  Context context(1);
  Tape<float> tape(context);
  std::vector<float> x(std::size_t(3 * 8));
  const Var<float> narrow = tape.input(contiguous(x.data(), {1, 3, 1, 8}));
  EXPECT_EQ(error_of([&] { (void)layer.mixer.forward(tape, narrow); }), "mixer: expected x [B, T, 1, 16], got [1, 3, 1, 8]");
  MixerState<float> state = layer.mixer.start(3);
  EXPECT_EQ(error_of([&] { (void)layer.mixer.prefill(tape, tape.input(layer.all()), state); }),
            "mixer: expected 3 sequences as in the state, got 2");
  EXPECT_EQ(error_of([&] { (void)layer.mixer.step(tape, tape.input(layer.all()), state); }),
            "mixer: expected one token for a step, got 13");
}

}  // namespace
}  // namespace isomer
