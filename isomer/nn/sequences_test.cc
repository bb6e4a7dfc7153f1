// What holds for every preset, with each of its options: packed and padded sequences give what each gives alone; of causal ones
// streams may stand at different positions, and gradients go through states.
#include <gtest/gtest.h>

#include <cmath>

#include "isomer/laws/layout.h"
#include "isomer/nn/mixer_check.h"
#include "isomer/nn/small_layer.h"
#include "tests/error_of.h"
#include "tests/quick.h"

namespace isomer {
namespace {
using D = double;
using Layer = SmallLayer<D>;
using Numbers = std::vector<D>;

// Of 26 tokens, with an empty one and one of a single token.
constexpr std::array<std::int64_t, 5> kOffsets{0, 7, 7, 8, 26};
constexpr Index kTokens = 26;

/// Relative to the largest of what is wanted; several forms of a law round differently.
void expect_near(const Numbers& got, const Numbers& want, const std::string& what, D limit = 1e-9) {
  ASSERT_EQ(got.size(), want.size()) << what;
  D largest = 1e-3, worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const D error = std::abs(got[i] - want[i]);
    largest = std::max(largest, std::abs(want[i]));
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  EXPECT_LE(worst, limit * largest) << what;
}

/// A layer, its 26 tokens as one row, and gradients at its output.
struct Row {
  explicit Row(const graph::Graph& graph) : layer(graph), dy(layer.x().size()) {
    Rng rng(9);
    for (D& number : dy) number = rng.normal();
  }
  [[nodiscard]] Index width() const { return layer.width(); }

  /// Tokens begin … begin + count − 1, with what the mixer takes from others.
  struct Inputs {
    Var<D> x;
    std::vector<Var<D>> taken;
  };
  [[nodiscard]] Inputs inputs(Tape<D>& tape, Index begin, Index count) {
    Inputs in{tape.input(slice(contiguous(layer.x().data(), {1, kTokens, 1, width()}), 1, begin, count), tape.recording()), {}};
    for (Layer::Other& other : layer.others()) {
      const Shape4 shape{1, kTokens, other.shape[2], other.shape[3]};
      in.taken.push_back(tape.input(slice(contiguous(other.numbers.data(), shape), 1, begin, count), tape.recording()));
    }
    return in;
  }
  void seed(Tape<D>& tape, Var<D> y, Index begin) { std::copy_n(dy.data() + begin * width(), y.value.size(), tape.seed(y).data); }
  /// Of every parameter; and they start anew.
  [[nodiscard]] Numbers parameter_gradients() {
    Numbers all;
    for (const Parameter<D>& p : layer.parameters().all()) all.insert(all.end(), p.gradient().begin(), p.gradient().end());
    layer.parameters().zero_gradients();
    return all;
  }

  Layer layer;
  Numbers dy;
};

/// Outputs and gradients at all inputs, one token behind the other.
struct Result {
  Numbers y = {}, dx = {};
  std::vector<Numbers> dtaken = {};

  void add(Tape<D>& tape, const Row::Inputs& in, const Numbers& own) {
    y.insert(y.end(), own.begin(), own.end());
    append(tape, in.x, dx);
    dtaken.resize(in.taken.size());
    for (std::size_t i = 0; i < in.taken.size(); ++i) append(tape, in.taken[i], dtaken[i]);
  }
  static void append(Tape<D>& tape, Var<D> x, Numbers& to) {
    const View<const D, 4> d = tape.arrived(x);
    each_element(d.shape, [&](const auto& i) { to.push_back(*element(d, i)); });
  }
};

void expect_equal(const Result& got, const Result& want, D limit = 1e-9) {
  expect_near(got.y, want.y, "y", limit);
  expect_near(got.dx, want.dx, "dx", limit);
  for (std::size_t i = 0; i < want.dtaken.size(); ++i) expect_near(got.dtaken[i], want.dtaken[i], "dtaken", limit);
}

class SequencesOfPresets : public ::testing::TestWithParam<const Preset*> {
 protected:
  template <class F>
  void each_graph(bool (*wanted)(const graph::Graph&), F f) {
    for (const MixerCase& what : mixer_cases(*GetParam())) {
      SCOPED_TRACE(what.label);
      const graph::Graph graph = build_small(*GetParam(), what);
      if (!wanted(graph)) continue;
      f(graph);
      if (tests::quick()) return;
    }
  }
  Context context_{1};
};
INSTANTIATE_TEST_SUITE_P(Sequences, SequencesOfPresets, ::testing::ValuesIn(presets().begin(), presets().end()),
                         [](const auto& preset) {
                           std::string name(preset.param->name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

bool packs(const graph::Graph& graph) { return !graph::reads_images(graph); }
bool looks_ahead(const graph::Graph& graph) { return packs(graph) && !graph::causal(graph); }

TEST_P(SequencesOfPresets, GivesPackedSequencesWhatEachGivesAlone) {
  each_graph(packs, [&](const graph::Graph& graph) {
    Row row(graph);
    Tape<D> tape(context_);
    const auto run = [&](Index begin, Index count, std::span<const std::int64_t> offsets, Result& result) {
      const Row::Inputs in = row.inputs(tape, begin, count);
      const Var<D> y = row.layer.mixer().forward(tape, in.x, {.taken = in.taken, .offsets = offsets});
      const Numbers own = Layer::numbers(y.value);
      row.seed(tape, y, begin);
      tape.backward();
      result.add(tape, in, own);
      tape.clear();
    };
    Result want, got;
    for (std::size_t i = 0; i + 1 < kOffsets.size(); ++i)
      if (kOffsets[i] < kOffsets[i + 1]) run(kOffsets[i], kOffsets[i + 1] - kOffsets[i], {}, want);
    const Numbers parameters = row.parameter_gradients();
    run(0, kTokens, kOffsets, got);
    expect_equal(got, want);
    expect_near(row.parameter_gradients(), parameters, "parameters");
  });
}

TEST_P(SequencesOfPresets, GivesPaddedSequencesWhatEachGivesAlone) {
  constexpr std::array<Index, 2> kLengths{5, 13};
  each_graph(looks_ahead, [&](const graph::Graph& graph) {
    Row row(graph);
    Tape<D> tape(context_);
    const auto run = [&](Index b, Index count, Index length, std::span<const Index> lengths, Numbers& y, Numbers& dx) {
      const Var<D> x = tape.input(slice(slice(row.layer.all(), 0, b, count), 1, 0, length), true);
      const Var<D> out = row.layer.mixer().forward(tape, x, {.lengths = lengths});
      const View<D, 4> seed = tape.seed(out);
      for (Index i = 0; i < count; ++i)
        for (Index t = 0; t < length; ++t)
          for (Index d = 0; d < row.width(); ++d) seed(i, t, 0, d) = row.dy[std::size_t(((b + i) * 13 + t) * row.width() + d)];
      y = Layer::numbers(out.value);
      tape.backward();
      Result::append(tape, x, dx);
      tape.clear();
    };
    std::array<Numbers, 2> want_y, want_dx;
    for (std::size_t b = 0; b < 2; ++b) {
      run(Index(b), 1, kLengths[b], {}, want_y[b], want_dx[b]);
      want_y[b].resize(std::size_t(13 * row.width()), 0);
      want_dx[b].resize(std::size_t(13 * row.width()), 0);
    }
    const Numbers parameters = row.parameter_gradients();
    Numbers y, dx;
    run(0, 2, 13, kLengths, y, dx);
    const auto both = [](std::array<Numbers, 2> of) {
      of[0].insert(of[0].end(), of[1].begin(), of[1].end());
      return of[0];
    };
    expect_near(y, both(want_y), "y");
    expect_near(dx, both(want_dx), "dx");
    expect_near(row.parameter_gradients(), parameters, "parameters");
  });
}

TEST_P(SequencesOfPresets, StreamsSequencesThatStandAtDifferentPositions) {
  constexpr std::array<Index, 3> kLengths{5, 1, 3};
  constexpr Index kSteps = 2, kCount = Index(kLengths.size());
  each_graph(graph::causal, [&](const graph::Graph& graph) {
    Row row(graph);
    Tape<D> tape(context_, Record::no);
    // Sequence i has the tokens from 8 i on; each alone.
    std::vector<Numbers> want(kCount);
    for (Index i = 0; i < kCount; ++i) {
      MixerState<D> state = row.layer.mixer().start(1);
      for (Index t = 0; t < kLengths[std::size_t(i)] + kSteps; ++t) {
        const Row::Inputs in = row.inputs(tape, 8 * i + t, 1);
        const Numbers y = Layer::numbers(row.layer.mixer().step(tape, in.x, state, {.taken = in.taken}).value);
        want[std::size_t(i)].insert(want[std::size_t(i)].end(), y.begin(), y.end());
      }
    }
    // Prompts of different lengths at once, then a token of each at a time.
    std::vector<std::int64_t> offsets{0};
    for (const Index length : kLengths) offsets.push_back(offsets.back() + length);
    std::vector<Numbers> got(kCount);
    MixerState<D> state = row.layer.mixer().start(kCount);
    const auto gather = [&](const auto& count, const auto& first) {
      Numbers x;
      std::vector<Numbers> taken(row.layer.others().size());
      for (Index i = 0; i < kCount; ++i) {
        const Row::Inputs in = row.inputs(tape, 8 * i + first(i), count(i));
        const auto add = [](Var<D> from, Numbers& to) {
          each_element(from.shape(), [&](const auto& at) { to.push_back(*element(from.value, at)); });
        };
        add(in.x, x);
        for (std::size_t k = 0; k < taken.size(); ++k) add(in.taken[k], taken[k]);
      }
      return std::pair(x, taken);
    };
    const auto run = [&](Index B, Index T, std::pair<Numbers, std::vector<Numbers>> all, std::span<const std::int64_t> packed) {
      std::vector<Var<D>> taken;
      for (std::size_t k = 0; k < all.second.size(); ++k) {
        const Shape4& shape = row.layer.others()[k].shape;
        taken.push_back(tape.input(contiguous(all.second[k].data(), {B, T, shape[2], shape[3]})));
      }
      const Var<D> x = tape.input(contiguous(all.first.data(), {B, T, 1, row.width()}));
      return Layer::numbers(row.layer.mixer().prefill(tape, x, state, {.taken = taken, .offsets = packed}).value);
    };
    const auto split = [&](const Numbers& y, const auto& count) {
      auto from = y.begin();
      for (Index i = 0; i < kCount; ++i) {
        const auto size = count(i) * row.width();
        got[std::size_t(i)].insert(got[std::size_t(i)].end(), from, from + size);
        from += size;
      }
    };
    const auto length = [&](Index i) { return kLengths[std::size_t(i)]; };
    split(run(1, Index(offsets.back()), gather(length, [](Index) { return 0; }), offsets), length);
    for (Index i = 0; i < kCount; ++i) EXPECT_EQ(state.positions()[std::size_t(i)], length(i));
    const auto one = [](Index) { return Index(1); };
    for (Index step = 0; step < kSteps; ++step)
      split(run(kCount, 1, gather(one, [&](Index i) { return length(i) + step; }), {}), one);
    for (Index i = 0; i < kCount; ++i) expect_near(got[std::size_t(i)], want[std::size_t(i)], "sequence " + std::to_string(i));
  });
}

TEST_P(SequencesOfPresets, CarriesGradientsThroughItsState) {
  constexpr Index kCut = 11;
  each_graph(graph::causal, [&](const graph::Graph& graph) {
    Row row(graph);
    const Mixer<D>& mixer = row.layer.mixer();
    Result want, got;
    {
      Tape<D> tape(context_);
      const Row::Inputs in = row.inputs(tape, 0, kTokens);
      const Var<D> y = mixer.forward(tape, in.x, {.taken = in.taken});
      const Numbers own = Layer::numbers(y.value);
      row.seed(tape, y, 0);
      tape.backward();
      want.add(tape, in, own);
    }
    const Numbers parameters = row.parameter_gradients();
    Tape<D> first(context_), second(context_);
    StateValues<D> cut(graph, 1, first);
    const Row::Inputs in1 = row.inputs(first, 0, kCut), in2 = row.inputs(second, kCut, kTokens - kCut);
    const Var<D> y1 = mixer.forward(first, in1.x, {.taken = in1.taken, .state = &cut});
    EXPECT_EQ(cut.positions()[0], kCut);
    const StateValues<D> start = cut.on(second);
    StateValues<D> end = start;
    const Var<D> y2 = mixer.forward(second, in2.x, {.taken = in2.taken, .state = &end});
    const Numbers own1 = Layer::numbers(y1.value), own2 = Layer::numbers(y2.value);
    row.seed(second, y2, kCut);
    second.backward();
    row.seed(first, y1, 0);
    cut.receive(first, start, second);
    first.backward();
    got.add(first, in1, own1);
    got.add(second, in2, own2);
    expect_equal(got, want);
    expect_near(row.parameter_gradients(), parameters, "parameters");
  });
}

TEST(PackedSequences, AreRefusedByMixersOfImages) {
  const Settings image{{"heads", "2"}, {"causal", "false"}, {"residual", "image"}, {"rows", "2"}, {"columns", "3"}};
  Layer layer(build_small(find_preset("inline"), {.label = "", .settings = image}));
  Context context(1);
  Tape<D> tape(context, Record::no);
  const std::array<std::int64_t, 3> offsets{0, 3, 6};
  const std::array<Index, 2> lengths{3, 6};
  const auto error = [&](Index rows, const MixerPass<D>& pass) {
    return tests::error_of([&] { (void)layer.mixer().forward(tape, tape.input(slice(layer.all(), 0, 0, rows)), pass); });
  };
  const char* const refused = "mixer: expected rows of one image each, got packed or padded ones for inline with an image";
  EXPECT_EQ(error(1, {.offsets = offsets}), refused);
  EXPECT_EQ(error(2, {.lengths = lengths}), refused);
  const std::array<Index, 2> whole{6, 6};
  EXPECT_EQ(error(2, {.lengths = whole}), "no error");
}

TEST(StateValues, AreRefusedForAnotherNumberOfSequences) {
  Layer layer(build_small(find_preset("gla"), {.label = "", .settings = {{"heads", "2"}}}));
  Context context(1);
  Tape<D> tape(context);
  StateValues<D> state(layer.mixer().graph(), 3, tape);
  EXPECT_EQ(tests::error_of([&] { (void)layer.mixer().forward(tape, tape.input(layer.all()), {.state = &state}); }),
            "mixer: expected 3 sequences as in the state, got 2");
}

}  // namespace
}  // namespace isomer
