// What holds for every preset, with each of its options: the rows of mixer_check.h; states can be forked and saved, threads
// change nothing, and the laws can be called by name.
#include "isomer/nn/mixer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "isomer/laws/check.h"
#include "isomer/nn/mixer_check.h"
#include "isomer/nn/small_layer.h"
#include "tests/error_of.h"
#include "tests/heap.h"
#include "tests/quick.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using Layer = SmallLayer<float>;
constexpr Index kBatch = Layer::kBatch;

graph::Graph graph_of(std::string_view preset) {
  return build_small(find_preset(preset), {.label = "", .settings = {{"heads", "2"}}});
}

/// Quick: the preset as it is.
using tests::quick;

class EveryPreset : public ::testing::TestWithParam<const Preset*> {
 protected:
  [[nodiscard]] static std::vector<MixerCase> cases() {
    std::vector<MixerCase> all = mixer_cases(*GetParam());
    if (quick()) all.erase(all.begin() + 1, all.end());
    return all;
  }
  Context context_{1};
};
std::string test_name(const ::testing::TestParamInfo<const Preset*>& preset) {
  std::string name(preset.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Mixer, EveryPreset, ::testing::ValuesIn(presets().begin(), presets().end()), test_name);

TEST_P(EveryPreset, PassesItsChecks) {
  CheckPlan plan;
  if (quick()) plan.types = {Type::f32};
  for (const CheckRow& row : check(*GetParam(), cases(), context_, plan))
    EXPECT_TRUE(row.pass) << row.quantity << " " << row.form << " " << row.type << ": " << row.error << " > " << row.limit << " ("
                          << row.worst << ")";
}

TEST_P(EveryPreset, TakesWeightsInFewerBits) {
  for (const MixerCase& what : cases())
    for (const Type type : {Type::bf16, Type::f16}) {
      const graph::Graph graph = build_small(*GetParam(), what);
      Layer narrow(graph, type), wide(graph);
      // Products widen exactly: the bits are those of the same numbers in float.
      wide.parameters().assign(narrow.parameters().tensors());
      EXPECT_EQ(narrow.forward(context_), wide.forward(context_)) << what.label << " " << name_of(type);
      EXPECT_TRUE(std::ranges::any_of(narrow.parameters().all(), [&](const auto& p) { return p.storage() == type; }));
    }
}

TEST_P(EveryPreset, HasAStateThatCanBeForkedAndSaved) {
  for (const MixerCase& what : cases()) {
    const graph::Graph graph = build_small(*GetParam(), what);
    if (!graph::causal(graph)) {
      EXPECT_THROW((MixerState<float>(graph, 1)), Error);
      continue;
    }
    Layer layer(graph);
    Tape<float> tape(context_, Record::no);
    MixerState<float> state = layer.mixer().start(kBatch);
    (void)layer.prefill(tape, 0, 7, state);
    EXPECT_GT(state.bytes(), 0);
    Tensors numbers;
    state.add_to(numbers, "layers.0.");
    MixerState<float> fork = state, loaded = layer.mixer().start(kBatch);
    loaded.assign(numbers, "layers.0.");
    EXPECT_EQ(loaded.bytes(), state.bytes());
    EXPECT_EQ(loaded.positions()[0], 7);
    (void)layer.prefill(tape, 3, 1, fork);  // goes its own way
    const auto rest = [&](MixerState<float>& from) { return Layer::numbers(layer.prefill(tape, 7, 6, from).value); };
    const std::vector<float> want = rest(state);
    EXPECT_EQ(rest(loaded), want) << what.label;
    EXPECT_NE(rest(fork), want) << what.label;
  }
}

TEST_P(EveryPreset, IsTheSameOnAnyNumberOfThreads) {
  Context two(2);
  for (const MixerCase& what : cases()) {
    Layer layer(build_small(*GetParam(), what));
    EXPECT_EQ(layer.forward(context_), layer.forward(two)) << what.label;
  }
}

TEST_P(EveryPreset, IsMadeOfLawsOnNamedTensors) {
  for (const MixerCase& what : cases()) {
    SmallLayer<double> layer(build_small(*GetParam(), what));
    Tape<double> tape(context_, Record::no);
    const std::vector<LawCall> calls = layer.law_calls(tape);
    EXPECT_FALSE(calls.empty());
    for (const LawCall& call : calls) {
      const Tensors got = apply(find_law(call.law), {call.inputs, call.settings, Form::reference, context_});
      for (const auto& [name, want] : call.outputs)
        EXPECT_LE(relative_error(got.at(name), want), 1e-12) << what.label << " " << call.law << " " << name;
    }
  }
}

TEST(MixerCases, HaveNodesOfEveryKindAndLawsWithEveryOptionalInput) {
  std::set<std::size_t> kinds;
  std::set<std::string> roles;
  for (const Preset* preset : presets())
    for (const MixerCase& what : mixer_cases(*preset))
      for (const graph::Node& node : build_small(*preset, what).nodes) {
        kinds.insert(node.work.index());
        if (const auto* law = std::get_if<graph::Law>(&node.work))
          for (const std::string& role : law->roles) roles.insert(std::string(law->name()) + "." + role);
      }
  EXPECT_EQ(kinds.size(), std::variant_size_v<graph::AnyWork>);
  for (const Law* law : laws())
    for (const TensorSpec& input : law->inputs()) {
      const std::string name(input.name);
      if (name.starts_with("initial_") || name == "offsets" || name == "gate") continue;
      EXPECT_TRUE(roles.contains(std::string(law->name()) + "." + name)) << law->name() << " " << name;
    }
}

TEST_P(EveryPreset, AllocatesNothingAfterTheFirstSteps) {
  Layer layer(build_small(*GetParam(), mixer_cases(*GetParam())[0]));
  Tape<float> tape(context_), plain(context_, Record::no);
  MixerState<float> state = layer.mixer().start(kBatch);
  // The first steps find their memory in several blocks; from the third on it is one. A cache has room for 64 tokens.
  for (int step = 0; step < 6; ++step) {
    const long before = tests::heap_allocations();
    layer.parameters().zero_gradients();
    tape.backward(layer.mixer().forward(tape, tape.input(layer.all(), true)));
    tape.clear();
    (void)layer.mixer().step(plain, plain.input(layer.some(step, 1)), state);
    plain.clear();
    if (step > 2) {
      EXPECT_EQ(tests::heap_allocations(), before);
    }
  }
}

TEST(MixerState, OfAnotherMixerOrVersionOrADamagedFileIsRefused) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "state.safetensors";
  Layer gla(graph_of("gla"));
  Layer other(build_small(find_preset("gla"), {.label = "", .settings = {{"heads", "4"}}}));
  MixerState<float> state = gla.mixer().start(kBatch);
  Context context(1);
  Tape<float> tape(context, Record::no);
  (void)gla.mixer().prefill(tape, tape.input(gla.some(0, 7)), state);
  state.save(path);
  MixerState<float> loaded = gla.mixer().load(path);
  EXPECT_EQ(loaded.positions()[0], 7);
  const auto next = [&](MixerState<float>& from) {
    return Layer::numbers(gla.mixer().step(tape, tape.input(gla.some(7, 1)), from).value);
  };
  EXPECT_EQ(next(loaded), next(state));
  const std::string another = tests::error_of([&] { (void)other.mixer().load(path); });
  EXPECT_TRUE(another.find("expected one of the mixer gla-") != std::string::npos) << another;
  const auto rewrite = [&](const char* from, const char* to) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, std::string(from).size(), to);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  rewrite("\"version\":\"2\"", "\"version\":\"3\"");
  const std::string newer = tests::error_of([&] { (void)gla.mixer().load(path); });
  EXPECT_TRUE(newer.ends_with("state: expected version 2, got 3")) << newer;
  gla.mixer().start(2).save(path);
  rewrite("\"dtype\":\"F32\",\"shape\":[2,2,4,8]", "\"dtype\":\"F32\",\"shape\":[2,2,8,4]");
  const std::string shape = tests::error_of([&] { (void)gla.mixer().load(path); });
  EXPECT_TRUE(shape.find(", got [2, 2, 8, 4]") != std::string::npos) << shape;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  in.close();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() - 5);
  EXPECT_TRUE(tests::error_of([&] { (void)gla.mixer().load(path); }).starts_with("cannot read " + path));
  std::remove(path.c_str());
  EXPECT_TRUE(tests::error_of([&] { (void)gla.mixer().load(path); }).starts_with("cannot read " + path));
}

TEST(Mixer, RefusesWhatItCannotRun) {
  Layer layer(graph_of("gla"));
  Context context(1);
  Tape<float> tape(context);
  std::vector<float> x(std::size_t(3 * 8));
  const Var<float> narrow = tape.input(contiguous(x.data(), {1, 3, 1, 8}));
  EXPECT_EQ(tests::error_of([&] { (void)layer.mixer().forward(tape, narrow); }),
            "mixer: expected x [B, T, 1, 16], got [1, 3, 1, 8]");
  MixerState<float> state = layer.mixer().start(3);
  EXPECT_EQ(tests::error_of([&] { (void)layer.mixer().prefill(tape, tape.input(layer.all()), state); }),
            "mixer: expected 3 sequences as in the state, got 2");
  EXPECT_EQ(tests::error_of([&] { (void)layer.mixer().step(tape, tape.input(layer.all()), state); }),
            "mixer: expected one token for a step, got 13");
}

}  // namespace
}  // namespace isomer
