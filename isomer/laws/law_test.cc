#include "isomer/laws/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/laws/apply.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/check.h"
#include "isomer/laws/random.h"
#include "tests/error_of.h"
#include "tests/fake_law.h"

namespace isomer {
namespace {

constexpr Type kType = Type::f32;

/// A call that is right, for tests to spoil.
struct LawApply : testing::Test {
  FakeLaw law;
  Context context{1};
  Settings settings;
  Form form = Form::automatic;
  Tensors inputs = random_inputs(law, {.with = {"log_decay", "initial_state"}}, kType, 1);

  Tensors run() { return apply(law, {inputs, settings, form, context}); }
  std::string error() {
    return tests::error_of([&] { (void)run(); });
  }
  void pack(std::vector<std::int64_t> offsets) {
    inputs = random_inputs(law, {.with = {"offsets"}}, kType, 1);
    Tensor& x = inputs["offsets"] = Tensor(Type::i64, {Index(offsets.size())});
    std::copy(offsets.begin(), offsets.end(), x.data<std::int64_t>());
    inputs.erase("grad_final_state");
  }
};

TEST_F(LawApply, AcceptsWhatIsRight) {
  const Tensors out = run();
  EXPECT_EQ(out.at("o").shape(), (std::vector<Index>{2, 19, 2, 3}));
  EXPECT_TRUE(out.contains("grad_log_decay"));
  std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("grad_"); });
  EXPECT_FALSE(run().contains("grad_v"));
}

TEST_F(LawApply, NamesTheNearestInput) {
  inputs["log_decya"] = inputs["log_decay"].clone();
  EXPECT_EQ(error(), "fake: unknown input log_decya, did you mean log_decay?");
}

TEST_F(LawApply, NamesTheNearestGradient) {
  inputs["grad_final_stat"] = inputs["grad_final_state"].clone();
  EXPECT_EQ(error(), "fake: unknown input grad_final_stat, did you mean grad_final_state?");
}

TEST_F(LawApply, NamesTheNearestOption) {
  settings["casual"] = "true";
  EXPECT_EQ(error(), "fake: unknown option casual, did you mean causal?");
}

TEST_F(LawApply, WantsRequiredInputs) {
  inputs.erase("k");
  EXPECT_EQ(error(), "fake: expected an input k, found none");
}

TEST_F(LawApply, RefusesInputsThatTheOptionsDoNotUse) {
  inputs["unused"] = Tensor(kType, {2, 19});
  EXPECT_EQ(error(), "fake: unused is not used with these options");
}

TEST_F(LawApply, RefusesStatesThatTheOptionsDoNotUse) {
  settings["causal"] = "false";
  EXPECT_EQ(error(), "fake: initial_state is not used with these options");
}

TEST_F(LawApply, RefusesGradientsOfOutputsThatAreNotThere) {
  inputs["grad_extra"] = Tensor(kType, {2, 19});
  EXPECT_EQ(error(), "fake: grad_extra is not used with these options");
}

TEST_F(LawApply, RefusesGradientsThatDoNotFlow) {
  inputs["grad_final_count"] = Tensor(kType, {2});
  EXPECT_EQ(error(), "fake: no gradient enters final_count, got grad_final_count");
}

TEST_F(LawApply, WantsOneFloatingType) {
  inputs["v"] = inputs["v"].cast(Type::f64);
  EXPECT_EQ(error(), "fake: expected one floating type for all inputs, got F32 for grad_final_state and F64 for v");
}

TEST_F(LawApply, WantsFloatingNumbers) {
  inputs["v"] = Tensor(Type::i64, {2, 19, 2, 3});
  EXPECT_EQ(error(), "fake: expected v of type F32 or F64, got I64");
  inputs["v"] = Tensor(Type::f32, {2, 19, 2, 3}).cast(Type::bf16);
  EXPECT_EQ(error(), "fake: expected v of type F32 or F64, got BF16") << "a type of storage";
}

TEST_F(LawApply, WantsTheRank) {
  inputs["q"] = Tensor(kType, {2, 19, 5});
  EXPECT_EQ(error(), "fake: expected q of shape [B, T, Gq, K], got [2, 19, 5]");
}

TEST_F(LawApply, WantsSharedSizes) {
  inputs["k"] = Tensor(kType, {2, 19, 2, 6});
  EXPECT_EQ(error(), "fake: expected k of shape [B, S, Gk, K] = [2, S, Gk, 5], got [2, 19, 2, 6]");
}

TEST_F(LawApply, WantsOneOfTheAlternatives) {
  inputs["log_decay"] = Tensor(kType, {3});
  EXPECT_EQ(error(), "fake: expected log_decay of shape [B, T, H] = [2, 19, 2] or [H] = [2], got [3]");
}

TEST_F(LawApply, WantsStatesForEverySequence) {
  inputs["initial_state"] = Tensor(kType, {3, 2, 3});
  EXPECT_EQ(error(), "fake: expected initial_state of shape [n, H, V] = [2, 2, 3], got [3, 2, 3]");
}

TEST_F(LawApply, WantsGradientsOfTheOutputsShape) {
  inputs["grad_o"] = Tensor(kType, {2, 19, 2, 4});
  EXPECT_EQ(error(), "fake: expected grad_o of shape [B, T, H, V] = [2, 19, 2, 3], got [2, 19, 2, 4]");
}

TEST_F(LawApply, WantsHeadsThatDivide) {
  inputs["k"] = random_inputs(law, {.sizes = {{"Gk", 3}}}, kType, 1)["k"].clone();
  EXPECT_EQ(error(), "fake: expected heads that divide the largest count 3, got 2");
}

TEST_F(LawApply, WantsHeads) {
  inputs["v"] = Tensor(kType, {2, 19, 0, 3});
  EXPECT_EQ(error(), "fake: expected heads that divide the largest count 2, got 0");
}

TEST_F(LawApply, WantsSomethingInAHead) {
  inputs["v"] = Tensor(kType, {2, 19, 2, 0});
  EXPECT_EQ(error(), "fake: expected V >= 1, got 0");
}

TEST_F(LawApply, RefusesNaN) {
  inputs["q"].data<float>()[5 * 2 * 3 + 7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error(), "fake: expected finite numbers in q, got nan at [0, 3, 1, 2]");
}

TEST_F(LawApply, RefusesInfinityInGradients) {
  inputs["grad_o"].data<float>()[0] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(), "fake: expected finite numbers in grad_o, got -inf at [0, 0, 0, 0]");
}

TEST_F(LawApply, TakesADecayOfZeroButNotAnInfiniteOne) {
  inputs["log_decay"].data<float>()[3] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(), "no error");
  inputs["log_decay"].data<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(), "fake: expected finite numbers or -inf in log_decay, got inf at [0, 1, 1]");
}

TEST_F(LawApply, RefusesFormsItDoesNotHave) {
  form = Form::parallel;
  EXPECT_EQ(error(), "fake: expected a form that it has with these options (auto, reference, step, chunk), got parallel");
}

TEST_F(LawApply, RefusesFormsThatTheOptionsExclude) {
  inputs.erase("initial_state");
  settings["causal"] = "false";
  form = Form::step;
  EXPECT_EQ(error(), "fake: expected a form that it has with these options (auto, reference, chunk), got step");
}

TEST_F(LawApply, PacksSequences) {
  pack({0, 4, 4, 19});
  EXPECT_EQ(run().at("final_state").shape(), (std::vector<Index>{3, 2, 3}));
}

TEST_F(LawApply, WantsOffsetsFromZeroToT) {
  pack({0, 4, 18});
  EXPECT_EQ(error(), "fake: expected offsets from 0 to T = 19, got 0 to 18");
}

TEST_F(LawApply, WantsOffsetsThatNeverDecrease) {
  pack({0, 9, 4, 19});
  EXPECT_EQ(error(), "fake: expected offsets that never decrease, got 9 before 4");
}

TEST_F(LawApply, WantsSomeOffsets) {
  pack({});
  EXPECT_EQ(error(), "fake: expected offsets of shape [n + 1], got [0]");
}

TEST_F(LawApply, WantsOffsetsOfIntegers) {
  inputs["offsets"] = Tensor(kType, {2});
  EXPECT_EQ(error(), "fake: expected offsets of type I64, got F32");
}

TEST_F(LawApply, PacksOnlyOneRow) {
  Tensor& offsets = inputs["offsets"] = Tensor(Type::i64, {2});
  offsets.data<std::int64_t>()[0] = 0;
  offsets.data<std::int64_t>()[1] = 19;
  EXPECT_EQ(error(), "fake: expected B = 1 with offsets, got 2");
}

TEST_F(LawApply, PacksOnlyAsManyKeysAsQueries) {
  pack({0, 19});
  inputs["k"] = Tensor(kType, {1, 20, 2, 5});
  EXPECT_EQ(error(), "fake: expected S = T with offsets, got S = 20 and T = 19");
}

TEST(LawForms, HaveNames) {
  for (Form form : {Form::automatic, Form::reference, Form::step, Form::chunk, Form::parallel})
    EXPECT_EQ(form_named(name_of(form)), form);
  EXPECT_THROW((void)form_named("chunks"), Error);
}

TEST(Laws, SayWhatAStreamKeeps) {
  for (const Law* law : laws())
    for (const Case& what : law->cases()) {
      const std::shared_ptr<const BoundLaw> bound = law->bind(what.settings);
      if (!bound->causal()) continue;
      const Given given = given_of(*law, random_inputs(*law, what, kType, 1));
      const bool grows = std::ranges::any_of(law->states(), &StateSpec::grows);
      const StateSize size = bound->state_size({.S = 7}, given);
      EXPECT_GT(size.fixed + size.per_token, 0) << law->name() << " " << what.label;
      EXPECT_EQ(bound->start(kType, {}) != nullptr, grows) << law->name() << " " << what.label;
    }
}

TEST(Laws, UnknownOnesAreRefused) { EXPECT_THROW((void)find_law("attentoin"), Error); }

/// The same numbers, tokens behind heads in memory.
struct HeadsFirst {
  Tensor memory;
  TensorView view;

  explicit HeadsFirst(const Tensor& x) : memory(x.type(), {x.shape()[0], x.shape()[2], x.shape()[1], x.shape()[3]}) {
    view = view_of(memory);
    std::swap(view.shape[1], view.shape[2]);
    std::swap(view.stride[1], view.stride[2]);
    MutableTensorView to = mutable_view_of(memory);
    to.shape = view.shape;
    to.stride = view.stride;
    copy_numbers(view_of(x), to);
  }
};

TEST(Apply, ReadsArraysOfAnyStridesWhereTheyAre) {
  Context context(1);
  for (const Law* law : laws()) {
    if (law->input("q") < 0) continue;
    for (const Case& what : law->cases()) {
      const Tensors inputs = random_inputs(*law, what, Type::f64, 5);
      const Tensors want = apply(*law, {inputs, what.settings, Form::automatic, context});
      NamedViews views = inputs;
      std::vector<HeadsFirst> kept;
      kept.reserve(inputs.size());
      for (auto& [name, view] : views)
        if (view.rank == 4 && !name.ends_with("state")) view = kept.emplace_back(inputs.at(name)).view;
      const Tensors got = apply(*law, {views, what.settings, Form::automatic, context});
      for (const auto& [name, tensor] : want)
        EXPECT_LE(relative_error(got.at(name), tensor), 1e-12) << law->name() << " " << what.label << " " << name;
    }
  }
}

TEST(Apply, WritesToMemoryOfTheCallers) {
  Context context(1);
  for (const Law* law : laws()) {
    for (const Case& what : law->cases()) {
      const Tensors inputs = random_inputs(*law, what, Type::f64, 5);
      const Tensors want = apply(*law, {inputs, what.settings, Form::automatic, context});
      // Every second number, in arrays of NaN.
      Tensors wide;
      apply(*law->bind(what.settings), inputs, Form::automatic, context,
            [&](const std::string& name, Type type, std::vector<Index> shape) {
              shape.back() *= 2;
              Tensor& memory = wide[name] = Tensor(type, shape);
              std::fill_n(memory.data<double>(), memory.size(), std::numeric_limits<double>::quiet_NaN());
              LawView view = law_view(memory);
              view.shape[std::size_t(view.rank - 1)] /= 2;
              view.stride[std::size_t(view.rank - 1)] = 2;
              return view;
            });
      ASSERT_EQ(wide.size(), want.size()) << law->name() << " " << what.label;
      for (const auto& [name, tensor] : want) {
        const double* got = wide.at(name).data<double>();
        for (Index i = 0; i < tensor.size(); ++i)
          ASSERT_NEAR(got[2 * i], tensor.data<double>()[i], 1e-9 * std::max(1.0, std::abs(tensor.data<double>()[i])))
              << law->name() << " " << what.label << " " << name << " " << i;
        for (Index i = 0; i < tensor.size(); ++i) ASSERT_TRUE(std::isnan(got[2 * i + 1])) << name;
      }
    }
  }
}

TEST(Apply, GoesForwardAndBackInTwoSteps) {
  Context context(1);
  for (const Law* law : laws()) {
    for (const Case& what : law->cases()) {
      const Tensors all = random_inputs(*law, what, Type::f64, 5);
      const Tensors want = apply(*law, {all, what.settings, Form::automatic, context});
      const std::shared_ptr<const BoundLaw> bound = law->bind(what.settings);
      NamedViews inputs = all;
      std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("grad_"); });
      for (const bool taped : {true, false}) {
        Tensors out, gradients;
        LawTape tape;
        const NamedRun run{.tape = taped ? &tape : nullptr, .context = context};
        forward(*bound, inputs, run, [&](const std::string& name, Type type, const std::vector<Index>& shape) {
          return law_view(out[name] = Tensor(type, shape));
        });
        // Every other gradient is not wanted.
        bool wanted = false;
        backward(*bound, all, out, run, [&](const std::string& name, Type type, const std::vector<Index>& shape) {
          wanted = !wanted;
          return wanted ? law_view(gradients[name] = Tensor(type, shape)) : LawView{};
        });
        gradients.merge(out);
        EXPECT_GT(gradients.size(), out.size());
        for (const auto& [name, tensor] : gradients)
          EXPECT_LE(relative_error(tensor, want.at(name)), 1e-11) << law->name() << " " << what.label << " " << name;
      }
    }
  }
}

TEST(Apply, RefusesBoundCallsAlike) {
  const Law& law = find_law("attention");
  Context context(1);
  NamedViews none;
  const auto make = [](const std::string&, Type, const std::vector<Index>&) { return LawView{}; };
  EXPECT_EQ(tests::error_of([&] { apply(*law.bind({}), none, Form::automatic, context, make); }),
            "attention: expected an input q, found none");
}

}  // namespace
}  // namespace isomer
