// The properties of every law, on its own cases; and the suite itself, which must find faults put into a small law.
#include "isomer/laws/properties.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <memory>

#include "isomer/laws/properties_slopes.h"
#include "isomer/laws/properties_splits.h"
#include "tests/fake_law.h"
#include "tests/quick.h"

namespace isomer::properties {
namespace {

constexpr std::uint64_t kSeed = 20;
/// Under the sanitizers, which are ten times slower, fewer sizes and one type do: the kernels of both are one text.
using tests::quick;
std::vector<Type> types() { return quick() ? std::vector{Type::f32} : std::vector{Type::f32, Type::f64}; }

/// A thread pool each, made once: starting threads takes longer than most calls.
Context& context_of(int threads) {
  static std::map<int, std::unique_ptr<Context>> pools;
  auto& pool = pools[threads];
  if (!pool) pool = std::make_unique<Context>(threads);
  return *pool;
}

/// The case with T tokens; keys that came before the first query stay.
Case with_length(const Law& law, Case what, Index T) {
  Sizes sizes = complete(law, what);
  if (what.sizes.contains("S")) what.sizes["S"] = T + sizes["S"] - sizes["T"];
  what.sizes["T"] = T;
  return what;
}

std::vector<Form> forms_of(const Law& law, const Case& what) {
  std::vector<Form> forms;
  const auto bound = law.bind(what.settings);
  for (Form form : law.forms())
    if (bound->offers(form)) forms.push_back(form);
  return forms;
}

/// Calls property(trial) for every form and type of the case.
template <class Property>
std::string each(const Law& law, const Case& what, Property property) {
  std::string failures;
  for (Form form : forms_of(law, what))
    for (Type type : types()) failures += property(Trial{law, what, form, type, kSeed, context_of(1)});
  return failures;
}

std::string agree_over(const Law& law, const Case& what) {
  const Tensors want =
      Trial{law, what, Form::reference, Type::f64, kSeed, context_of(1)}.run(random_inputs(law, what, Type::f64, kSeed));
  return each(law, what, [&](const Trial& trial) { return agrees(trial, want); });
}

std::string agree_everywhere(const Law& law, const Case& what) {
  // Around powers of two, where chunks and tiles end.
  const std::vector<Index> few{0, 1, 65}, all{0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
  std::string failures;
  for (Index T : quick() ? few : all) failures += agree_over(law, with_length(law, what, T));
  // Heads wider than a register tile, with a tail.
  Case wide = with_length(law, what, 33);
  for (const auto& [letter, size] : Sizes{{"B", 1}, {"K", 37}, {"V", 26}, {"N", 21}, {"C", 37}}) wide.sizes.emplace(letter, size);
  return failures + agree_over(law, wide);
}

/// Where a case may be cut. A law whose state is the keys it saw gives packed sequences no way to continue, so that those are cut
/// between sequences only.
std::vector<std::vector<Index>> cuts(const Law& law, const Case& what, Index T) {
  const Tensors inputs = random_inputs(law, what, Type::f64, kSeed);
  bool carries = false;
  for (const TensorSpec& spec : law.inputs())
    carries |= spec.name.starts_with("initial_") && law.bind(what.settings)->uses(spec.name, given_of(law, inputs));
  if (const auto packed = inputs.find("offsets"); packed != inputs.end() && !carries) {
    const std::int64_t* offsets = packed->second.data<std::int64_t>();
    return {{0, Index(offsets[1]), T}, std::vector<Index>(offsets, offsets + packed->second.size())};
  }
  if (T > 20 && quick()) return {{0, T / 2, T / 2, T}};
  if (T > 20) return {{0, 1, T}, {0, T / 2, T}, {0, T - 1, T}, {0, 0, T / 3, T / 3, T, T}};
  std::vector<Index> tokens;
  for (Index t = 0; t <= T; ++t) tokens.push_back(t);
  return {tokens};
}

std::string split_everywhere(const Law& law, const Case& what) {
  if (!read_bool(what.settings, "causal", true)) return "";
  std::string failures;
  for (Index T : {Index{11}, Index{quick() ? 35 : 141}}) {
    const Case sized = with_length(law, what, T);
    for (const auto& points : cuts(law, sized, T))
      failures += each(law, sized, [&](const Trial& trial) { return splits(trial, points); });
  }
  return failures;
}

std::string causal_everywhere(const Law& law, const Case& what) {
  const Case sized = with_length(law, what, quick() ? 35 : 141);
  const Index T = sized.sizes.at("T");
  std::string failures;
  for (Index t : quick() ? std::vector<Index>{0, T - 1} : std::vector<Index>{0, T / 4, T / 2, T - 1})
    failures += each(law, sized, [&](const Trial& trial) {
      return causal(trial, t) + (trial.is_causal() ? no_gradient_from_the_past(trial, t) : "");
    });
  return failures;
}

std::string same_for_any_threads(const Law& law, const Case& what) {
  std::string failures;
  for (Form form : forms_of(law, what)) {
    if (form == Form::reference) continue;  // plain loops
    // Every step wakes the pool.
    const Case sized = with_length(law, what, form == Form::step ? 9 : quick() ? 70 : 150);
    for (Type type : types()) {
      const auto on = [&](int count) { return Trial{law, sized, form, type, kSeed, context_of(count)}; };
      failures += threads(on(1), {on(2), on(7)});
    }
  }
  return failures;
}

std::string nothing_from_nothing(const Law& law, const Case& what) { return each(law, with_length(law, what, 0), empty); }

std::string slopes_of(const Law& law, const Case& what) {
  Case tiny = with_length(law, what, 5);
  for (const auto& [letter, size] : Sizes{{"K", 3}, {"V", 2}, {"N", 2}, {"C", 2}}) tiny.sizes[letter] = size;
  tiny.sizes.emplace("B", 1);
  return slopes(Trial{law, tiny, Form::reference, Type::f64, kSeed, context_of(1)});
}

struct Subject {
  const Law* law;
  const Case* what;
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.law->name() << ", " << subject.what->label; }

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Law* law : laws())
    for (const Case& what : law->cases()) all.push_back({law, &what});
  return all;
}

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = std::string(info.param.law->name()) + "_" + info.param.what->label;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name + "_" + std::to_string(info.index);
}

class Properties : public testing::TestWithParam<Subject> {
 protected:
  [[nodiscard]] const Law& law() const { return *GetParam().law; }
  [[nodiscard]] const Case& what() const { return *GetParam().what; }
};

TEST_P(Properties, FormsAgreeWithTheReference) { EXPECT_EQ(agree_everywhere(law(), what()), ""); }
TEST_P(Properties, SplitAnywhere) { EXPECT_EQ(split_everywhere(law(), what()), ""); }
TEST_P(Properties, TheFutureDoesNotReachThePast) { EXPECT_EQ(causal_everywhere(law(), what()), ""); }
TEST_P(Properties, ThreadsDoNotMatter) { EXPECT_EQ(same_for_any_threads(law(), what()), ""); }
TEST_P(Properties, EmptySequencesPassTheirState) { EXPECT_EQ(nothing_from_nothing(law(), what()), ""); }
TEST_P(Properties, GradientsAreSlopes) {
  // The reference is the same on every instruction set.
  if (quick()) GTEST_SKIP();
  EXPECT_EQ(slopes_of(law(), what()), "");
}

INSTANTIATE_TEST_SUITE_P(Laws, Properties, testing::ValuesIn(subjects()), test_name);

/// The small law with one fault in its chunk form.
struct Faulty : FakeLaw {
  explicit Faulty(void (*f)(const Call&, Tensors&)) : fault(f) {}
  void (*fault)(const Call&, Tensors&);
  [[nodiscard]] Tensors run(const Call& call, const Sizes& sizes) const override {
    Tensors out = FakeLaw::run(call, sizes);
    if (call.form == Form::chunk && sizes.at("T") > 0) fault(call, out);
    return out;
  }
};

/// Of a dense view.
double number_of(const TensorView& x, Index i) {
  return x.type == Type::f32 ? double(reinterpret_cast<const float*>(x.data)[i]) : reinterpret_cast<const double*>(x.data)[i];
}

void nudge(const Tensor& x, double by) { set_number(x, 0, number_at(x, 0) + by); }

const Case& plain() {
  static const Case what{.label = "plain", .with = {"initial_state", "initial_count"}};
  return what;
}

TEST(Suite, AcceptsASoundLaw) {
  const FakeLaw law;
  for (const Case& what : law.cases()) {
    EXPECT_EQ(agree_everywhere(law, what), "");
    EXPECT_EQ(causal_everywhere(law, what), "");
    EXPECT_EQ(same_for_any_threads(law, what), "");
    EXPECT_EQ(nothing_from_nothing(law, what), "");
    EXPECT_EQ(split_everywhere(law, what), "");
  }
  EXPECT_EQ(slopes_of(law, plain()), "");
}

TEST(Suite, FindsAWrongForm) {
  const Faulty law([](const Call&, Tensors& out) { nudge(out["final_state"], 1); });
  EXPECT_NE(agree_everywhere(law, plain()).find("fake, case plain, chunk, F32, seed 20, T 1: agrees: final_state has error"),
            std::string::npos);
}

TEST(Suite, FindsAForgottenState) {
  const Faulty law([](const Call& call, Tensors& out) {
    if (call.inputs.contains("initial_state")) nudge(out["o"], -1e-2);
  });
  EXPECT_NE(split_everywhere(law, {.label = "plain"}), "");
}

TEST(Suite, FindsAForgottenGradientOfTheState) {
  const Faulty law([](const Call& call, Tensors& out) {
    if (wants_gradients(call.inputs) && out.contains("grad_initial_state")) nudge(out["grad_initial_state"], 1e-2);
  });
  EXPECT_NE(split_everywhere(law, {.label = "plain"}), "");
}

TEST(Suite, FindsALeakFromTheFutureOfOneBit) {
  const Faulty law([](const Call& call, Tensors& out) {
    const TensorView& v = call.inputs.at("v");
    const Tensor& o = out["o"];
    // The last token of the first row.
    const Index last = v.size() / v.shape[0] - 1;
    set_number(o, 0, number_at(o, 0) * (number_of(v, last) > 8 ? 1 + 1e-7 : 1));
  });
  EXPECT_NE(causal_everywhere(law, plain()), "");
}

TEST(Suite, FindsALeakBetweenRows) {
  const Faulty law([](const Call& call, Tensors& out) {
    const Tensor& o = out["o"];
    set_number(o, o.size() - 1, number_at(o, o.size() - 1) + 1e-3 * number_of(call.inputs.at("v"), 0));
  });
  EXPECT_NE(causal_everywhere(law, plain()), "");
}

TEST(Suite, FindsADependenceOnThreads) {
  const Faulty law([](const Call& call, Tensors& out) {
    if (call.context.threads() == 7) nudge(out["grad_v"], 1e-6);
  });
  EXPECT_NE(same_for_any_threads(law, plain()), "");
}

TEST(Suite, FindsAWrongSlope) {
  // The small law does not differentiate its decay.
  EXPECT_NE(slopes_of(FakeLaw(), {.label = "decay", .with = {"log_decay"}}).find("grad_log_decay has error"), std::string::npos);
}

}  // namespace
}  // namespace isomer::properties
