// A law that nobody above the laws has heard of: a folder and a line make it known everywhere.
#include <gtest/gtest.h>

#include "isomer/autograd/law.h"
#include "isomer/autograd/testing.h"
#include "isomer/bench/check.h"
#include "isomer/bench/laws.h"
#include "isomer/laws/check.h"
#include "isomer/laws/random.h"
#include "isomer/mixers/builder.h"
#include "isomer/mixers/catalogue.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/equations.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/preset_list.h"
#include "isomer/nn/mixer_check.h"
#include "tests/error_of.h"
#include "tests/sixth_law/moving_average_law.h"

namespace isomer {
namespace {

// The line.
[[maybe_unused]] const bool added = (internal::add_law(moving_average_law()), true);

/// A layer of it, for which the builder needs no method.
void build(Builder& m) {
  const Value keep = m.map(Unary::sigmoid, m.linear("keep", m.x(), m.width(), {.bias = true}));
  const double scale = m.number("scale", 1, "of the law's output");
  const auto law = find_law("moving_average").bind({{"scale", std::to_string(scale)}});
  m.output(m.linear("o", m.law(law, {{"x", m.linear("v", m.x(), m.width())}, {"a", keep}}), m.width()));
}
const Preset kPreset{.name = "moving-average", .source = "nobody", .summary = "an average that forgets", .build = build};
// The file in presets/, which the build would find.
[[maybe_unused]] const bool listed = (internal::add_preset(kPreset), true);

TEST(SixthLaw, IsFoundByName) {
  EXPECT_EQ(find_law("moving_average").name(), "moving_average");
  EXPECT_EQ(tests::error_of([] { (void)find_law("moving_averag"); }), "unknown law moving_averag, did you mean moving_average?");
}

TEST(SixthLaw, IsApplied) {
  Context context(1);
  const Tensors inputs = random_inputs(moving_average_law(), moving_average_law().cases()[1], Type::f64, 1);
  const Tensors out = apply(moving_average_law(), {inputs, {{"scale", "2"}}, Form::automatic, context});
  const double a = inputs.at("a").data<double>()[0], h = inputs.at("initial_state").data<double>()[0];
  EXPECT_EQ(out.at("o").data<double>()[0], 2 * (a * h + (1 - a) * inputs.at("x").data<double>()[0]));
  EXPECT_TRUE(out.contains("grad_a") && out.contains("grad_initial_state"));
  EXPECT_EQ(tests::error_of([&] {
              (void)apply(moving_average_law(), {inputs, {{"scal", "2"}}, Form::automatic, context});
            }),
            "moving_average: unknown option scal, did you mean scale?");
}

TEST(SixthLaw, IsChecked) {
  Context context(1);
  const std::vector<CheckRow> rows = check(moving_average_law(), context);
  EXPECT_FALSE(rows.empty());
  for (const CheckRow& row : rows) EXPECT_TRUE(row.pass) << row.form << " " << row.quantity << " " << row.error;
}

TEST(SixthLaw, IsTimed) {
  Context context(1);
  const BenchCase what = moving_average_law().bench_cases(true)[0];
  const BenchWork work = moving_average_law().prepare(what);
  work.run(context);
  EXPECT_EQ(work.flops, 4.0 * 2048 * 512);
  EXPECT_EQ(work.state_bytes, 512 * 4.0);
  EXPECT_EQ(BoundCase(moving_average_law(), what).plan(what).form, Form::chunk);
  EXPECT_EQ(tests::error_of([&] { (void)BoundCase(moving_average_law(), {.subject = "moving_average", .variant = "odd"}); }),
            "moving_average: expected the variant plain, got odd");
}

TEST(SixthLaw, IsInEveryTable) {
  Context context(1);
  // isomer list: behind those of the other laws.
  const PresetRow listing = preset_rows(16, 100).back();
  EXPECT_EQ(listing.preset + " " + listing.law + listing.problem, "moving-average moving_average");
  EXPECT_EQ(listing.cost.state_floats, 16);
  // isomer show
  const std::vector<std::string> lines = equations(build_mixer("moving-average", {.width = 16}));
  EXPECT_EQ(std::ranges::count(lines, "h = a * h + (1 - a) * in"), 1);
  EXPECT_EQ(options_of(find_preset("moving-average"), {.width = 16})[0].name, "scale");
  // isomer check
  for (const char* name : {"moving_average", "moving-average"}) {
    const std::vector<CheckRow> rows = check_named({name}, context, {});
    EXPECT_FALSE(rows.empty());
    for (const CheckRow& row : rows) EXPECT_TRUE(row.pass && row.subject == name) << row.subject << " " << row.quantity;
  }
  // isomer bench, of the first case.
  std::atomic<bool> stop = false;
  const Monitor once{.progress = [&](const std::string& what) { stop = what.starts_with("moving_average"); }, .stop = &stop};
  const auto timed = bench_laws({.laws = {&find_law("moving_average")}, .quick = true}, context, once);
  ASSERT_EQ(timed.rows.size(), 1U);
  EXPECT_EQ(timed.rows[0].what.subject, "moving_average");
  EXPECT_GT(timed.rows[0].gflops, 0);
}

TEST(SixthLaw, IsALayerThatStreamsAndHasGradientsAndIsADynamicalSystem) {
  Context context(1);
  std::set<std::string> quantities;
  for (const CheckRow& row : check(kPreset, context)) {
    EXPECT_TRUE(row.pass) << row.quantity << " " << row.form << " " << row.error << " " << row.worst;
    quantities.insert(row.quantity);
  }
  EXPECT_EQ(quantities, (std::set<std::string>{"streaming", "forms", "causality", "dsf", "gradient"}));
}

TEST(SixthLaw, HasCostsEquationsAndAFingerprint) {
  const graph::Graph graph = build_mixer(kPreset, {.width = 16});
  EXPECT_EQ(graph.law, "moving_average");
  const Cost cost = cost_of(graph, 100);
  EXPECT_EQ(cost.state_floats, 16);
  EXPECT_EQ(cost.law_flops, 4.0 * 16);
  EXPECT_EQ(state_dimension(graph).channels, 16);
  const std::vector<std::string> lines = equations(graph);
  EXPECT_EQ(std::ranges::count(lines, "h = a * h + (1 - a) * in"), 1);
  EXPECT_EQ(std::ranges::count(lines, "in = v"), 1);
  EXPECT_NE(graph::dump(graph).find("law 1x16  moving_average x a #"), std::string::npos) << graph::dump(graph);
  const graph::Graph scaled = build_mixer(kPreset, {.width = 16}, {{"scale", "2"}});
  EXPECT_NE(graph::fingerprint(scaled), graph::fingerprint(graph));
}

using D = double;

TEST(SixthLaw, HasGradientsOfItsStates) {
  constexpr Index T = 6, N = 3;
  const BoundMovingAverage bound;
  // The second half starts from the final state of the first, as one sequence would.
  testing::expect_gradients({testing::random_values({2, T, 1, N}, 1), testing::random_values({2, T, 1, N}, 2, 0.5, 0.1),
                             testing::random_values({2, 1, 1, N}, 3)},
                            [&](Tape<D>& tape, std::span<const Var<D>> in) {
                              std::array<Var<D>, 1> last;
                              (void)ops::law<D>(tape, bound, {in[0], in[1], in[2]}, {.finals = last});
                              return ops::law<D>(tape, bound, {in[0], in[1], last[0]});
                            });
}

}  // namespace
}  // namespace isomer
