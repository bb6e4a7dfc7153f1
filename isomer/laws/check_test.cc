#include "isomer/laws/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "isomer/laws/random.h"
#include "tests/fake_law.h"

namespace isomer {
namespace {

Tensor row(std::vector<double> values) {
  Tensor x(Type::f64, {Index(values.size())});
  std::copy(values.begin(), values.end(), x.data<double>());
  return x;
}

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RelativeError, IsOverTheLargestWanted) {
  EXPECT_EQ(relative_error(row({1, -4}), row({1, -8})), 0.5);
  EXPECT_EQ(relative_error(row({1, -kInf}), row({1, -kInf})), 0);
  EXPECT_EQ(relative_error(row({0.25, 0}), row({0, 0})), 0.25);
  EXPECT_EQ(relative_error(row({1}).cast(Type::f32), row({1})), 0);
  EXPECT_EQ(relative_error(row({}), row({})), 0);
}

TEST(RelativeError, IsInfiniteWhereNothingIsComparable) {
  EXPECT_EQ(relative_error(row({1, kNaN}), row({1, 2})), kInf);
  EXPECT_EQ(relative_error(row({kNaN, 1}), row({kNaN, 1})), kInf);
  EXPECT_EQ(relative_error(row({1, kInf}), row({1, -kInf})), kInf);
  EXPECT_EQ(relative_error(row({1}), row({1, 2})), kInf);
}

TEST(ScaleOf, IsNeverFarBelowTheLargestGradient) {
  Tensors all;
  all["o"] = row({100});
  all["final_state"] = row({0});
  all["grad_q"] = row({1e-17});
  all["grad_v"] = row({-2});
  EXPECT_EQ(scale_of("grad_q", all), 0.125);
  EXPECT_EQ(scale_of("grad_v", all), 2);
  EXPECT_EQ(scale_of("o", all), 100);
  EXPECT_EQ(scale_of("final_state", all), 1);
}

TEST(Check, CoversFormsTypesAndQuantities) {
  const FakeLaw law;
  Context context(1);
  int calls = 0;
  const auto rows = check(law, context, {.progress = [&](int done, int total) {
                            EXPECT_EQ(done, ++calls);
                            EXPECT_EQ(total, 5);
                          }});
  std::set<std::string> forms, types, quantities;
  for (const CheckRow& r : rows) {
    EXPECT_TRUE(r.pass) << r.form << " " << r.quantity << " " << r.error << " in " << r.worst;
    EXPECT_EQ(r.subject, "fake");
    forms.insert(r.form);
    types.insert(r.type);
    quantities.insert(r.quantity);
  }
  EXPECT_EQ(forms, (std::set<std::string>{"reference", "step", "chunk"}));
  EXPECT_EQ(types, (std::set<std::string>{"f32", "f64"}));
  for (const char* quantity : {"o", "final_state", "final_count", "grad_v", "grad_initial_state"})
    EXPECT_TRUE(quantities.contains(quantity));
  EXPECT_EQ(calls, 5);
}

/// A law whose chunk form is wrong in one case.
struct BrokenLaw : FakeLaw {
  [[nodiscard]] std::span<const Case> cases() const override {
    static const std::vector<Case> all{
        {.label = "fine"}, {.label = "bad", .settings = {{"broken", "true"}}}, {.label = "fine too"}};
    return all;
  }
};

TEST(Check, FindsTheWrongFormAndCase) {
  const BrokenLaw law;
  Context context(1);
  int red = 0;
  for (const CheckRow& r : check(law, context, {.types = {Type::f32}})) {
    EXPECT_EQ(r.type, "f32");
    if (r.pass) continue;
    ++red;
    EXPECT_EQ(r.form + " " + r.worst, "chunk bad");
  }
  EXPECT_GE(red, 1);
}

TEST(RandomInputs, AreTheSameInBothTypesAndWhateverElseIsGiven) {
  const FakeLaw law;
  const Tensors a = random_inputs(law, {.label = ""}, Type::f32, 3),
                b = random_inputs(law, {.with = {"log_decay"}}, Type::f64, 3);
  for (const auto& [name, x] : a) EXPECT_EQ(relative_error(x, b.at(name)), 0) << name;
  EXPECT_NE(relative_error(a.at("q"), random_inputs(law, {.label = ""}, Type::f32, 4).at("q")), 0);
}

TEST(RandomInputs, FollowTheCase) {
  const FakeLaw law;
  const Tensors in = random_inputs(law,
                                   {.with = {"log_decay:H", "gate", "initial_count", "offsets"},
                                    .sizes = {{"T", 23}, {"Gq", 6}, {"Gv", 3}},
                                    .positive = {"q"}},
                                   Type::f64, 1);
  EXPECT_EQ(in.at("q").shape(), (std::vector<Index>{1, 23, 6, 5}));
  EXPECT_EQ(in.at("k").shape(), (std::vector<Index>{1, 23, 6, 5}));
  EXPECT_EQ(in.at("v").shape(), (std::vector<Index>{1, 23, 3, 3}));
  EXPECT_EQ(in.at("log_decay").shape(), (std::vector<Index>{6}));
  EXPECT_EQ(in.at("grad_final_state").shape(), (std::vector<Index>{4, 6, 3}));
  EXPECT_FALSE(in.contains("grad_extra") || in.contains("grad_final_count"));
  for (Index i = 0; i < in.at("q").size(); ++i) EXPECT_GE(in.at("q").data<double>()[i], 0.1f);
  for (Index i = 0; i < in.at("gate").size(); ++i)
    EXPECT_TRUE(in.at("gate").data<double>()[i] > 0 && in.at("gate").data<double>()[i] < 1);
  const std::int64_t* offsets = in.at("offsets").data<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(offsets, offsets + 5), (std::vector<std::int64_t>{0, 2, 2, 10, 23}));
  Context context(1);
  EXPECT_NO_THROW((void)apply(law, {in, {}, Form::automatic, context}));
}

}  // namespace
}  // namespace isomer
