#include "isomer/nn/block.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "isomer/mixers/channel_mix.h"
#include "isomer/nn/small_block.h"
#include "isomer/nn/testing.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using testing::draw;
using testing::expect_parameter_gradients;
using testing::kWidth;
using testing::random_values;
using testing::small_mixer;
using tests::error_of;

constexpr Index kB = 2, kT = 9;

TEST(Block, NamesItsParameters) {
  Parameters<double> parameters;
  const Block<double> block(small_mixer("softmax"), parameters, "layers.0", {.norm = {.kind = Norm::layer}});
  std::set<std::string> names;
  for (const Parameter<double>& p : parameters.all()) names.insert(p.name());
  for (const char* name : {"layers.0.norm1.weight", "layers.0.norm1.bias", "layers.0.norm2.weight", "layers.0.mlp.up.weight",
                           "layers.0.mlp.down.weight", "layers.0.mixer.q.weight", "layers.0.mixer.o.weight"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Block, HasTheGradientsOfItsEquation) {
  const DropoutOptions some{.rate = 0.25, .seed = 3, .stream = 10};
  for (const MlpKind mlp : {MlpKind::none, MlpKind::gelu, MlpKind::swiglu, MlpKind::channel_mix}) {
    Parameters<double> parameters;
    Block<double> block(small_mixer("gla"), parameters, "block", {.mlp = {.kind = mlp, .hidden = 6}});
    draw(parameters);
    for (const DropoutOptions& dropout : {DropoutOptions{.rate = 0}, some})
      expect_parameter_gradients(parameters, random_values({kB, 4, 1, kWidth}, 1),
                                 [&](Tape<double>& tape, Var<double> x) { return block.forward(tape, x, dropout); });
  }
}

TEST(Block, DropsTwoDifferentHalves) {
  Context context(1);
  Parameters<double> parameters;
  Block<double> block(small_mixer("gla"), parameters, "block");
  draw(parameters);
  testing::Values x = random_values({1, kT, 1, kWidth}, 1);
  const auto with = [&](const DropoutOptions& dropout) {
    Tape<double> tape(context, Record::no);
    const Var<double> y = block.forward(tape, tape.input(contiguous(x.data.data(), {1, kT, 1, kWidth})), dropout);
    return std::vector<double>(y.value.data, y.value.data + y.value.size());
  };
  const DropoutOptions one{.rate = 0.5, .seed = 1, .stream = 4};
  EXPECT_EQ(with(one), with(one));
  EXPECT_NE(with(one), with({.rate = 0}));
  EXPECT_NE(with(one), with({.rate = 0.5, .seed = 1, .stream = 6}));
  // Everything dropped is the residual stream itself.
  const std::vector<double> nothing = with({.rate = 1 - 1e-12, .seed = 1, .stream = 4});
  EXPECT_EQ(nothing, x.data);
}

class BlockStream : public ::testing::TestWithParam<MlpKind> {};

TEST_P(BlockStream, IsWhatItComputesAtOnce) {
  Context context(2);
  for (const char* preset : {"softmax", "gla", "gated-deltanet"}) {
    Parameters<double> parameters;
    Block<double> block(small_mixer(preset), parameters, "block", {.mlp = {.kind = GetParam(), .hidden = 6}});
    draw(parameters);
    testing::Values x = random_values({kB, kT, 1, kWidth}, 1);
    Tape<double> tape(context, Record::no);
    const Var<double> in = tape.input(contiguous(x.data.data(), {kB, kT, 1, kWidth}));
    const Var<double> want = block.forward(tape, in);
    MixerState<double> state = block.start(kB);
    std::optional<MixerState<double>> beside;
    if (block.mlp_graph() != nullptr) beside.emplace(*block.mlp_graph(), kB);
    for (const auto& [begin, end] : {std::array<Index, 2>{0, 4}, {4, 5}, {5, kT}}) {
      const Var<double> got = block.prefill(tape, Tape<double>::alias(in, slice(in.value, 1, begin, end - begin)), state, {},
                                            beside ? &*beside : nullptr);
      for (Index b = 0; b < kB; ++b)
        for (Index t = begin; t < end; ++t)
          for (Index d = 0; d < kWidth; ++d) EXPECT_NEAR(got.value(b, t - begin, 0, d), want.value(b, t, 0, d), 1e-12) << preset;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mlps, BlockStream, ::testing::Values(MlpKind::swiglu, MlpKind::channel_mix));

TEST(Block, WantsTheStateOfAnMlpThatHasOne) {
  Context context(1);
  Parameters<double> parameters;
  Block<double> block(small_mixer("gla"), parameters, "block", {.mlp = {.kind = MlpKind::channel_mix, .hidden = 6}});
  draw(parameters);
  testing::Values x = random_values({1, kT, 1, kWidth}, 1);
  Tape<double> tape(context, Record::no);
  const Var<double> in = tape.input(contiguous(x.data.data(), {1, kT, 1, kWidth}));
  MixerState<double> state = block.start(1);
  EXPECT_EQ(error_of([&] { (void)block.prefill(tape, in, state); }), "block: expected a state for channel-mix, got none");
  StateValues<double> values(block.mixer().graph(), 1, tape);
  EXPECT_EQ(error_of([&] { (void)block.forward(tape, in, {.rate = 0}, {.state = &values}); }),
            "block: expected the states of mixer and channel-mix, got one of them");
}

TEST(ChannelMix, IsItsEquation) {
  Context context(1);
  Parameters<double> parameters;
  const Mixer<double> mix(channel_mix(2, 1), parameters, "");
  for (const Parameter<double>& p : parameters.all())
    for (std::size_t i = 0; i < p.values().size(); ++i) p.values()[i] = p.name() == "mix" ? 0.25 : double(i + 1);
  std::vector<double> x{1, -2, 3, 5};
  Tape<double> tape(context, Record::no);
  const Var<double> y = mix.forward(tape, tape.input(contiguous(x.data(), {1, 2, 1, 2})));
  // x' = (0.75, -1.5) sums to -2.25 with weights 1 and 2, which relu ends; then (2.5, 3.25) to 9.
  for (const Index d : {0, 1}) {
    EXPECT_EQ(y.value(0, 0, 0, d), 0);
    EXPECT_NEAR(y.value(0, 1, 0, d), 81 * double(d + 1), 1e-12);
  }
}

}  // namespace
}  // namespace isomer
