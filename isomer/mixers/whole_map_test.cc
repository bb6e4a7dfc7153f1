#include "isomer/mixers/whole_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "isomer/laws/random.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;

struct Example {
  const Law& law;
  Settings settings;
  Tensors inputs, outputs;

  Example(const Law& of, Case what) : law(of), settings(what.settings) {
    what.sizes["B"] = 1;
    inputs = random_inputs(of, what, Type::f64, 3);
    std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("grad_"); });
    Context context(1);
    outputs = apply(law, {.inputs = inputs, .settings = settings, .form = Form::reference, .context = context});
  }
  [[nodiscard]] std::vector<double> map(Index head) const { return whole_map(law, inputs, settings, outputs, head); }
  [[nodiscard]] double at(const char* name, Index t, Index h, Index i) const {
    const Tensor& tensor = inputs.at(name);
    const Index G = tensor.shape()[2], D = tensor.shape()[3];
    return tensor.data<double>()[(t * G + h * G / 2) * D + i];
  }
};

// That Φ v is the law's output, whole_map() checks by itself.
TEST(WholeMap, IsThereForEveryCaseOfWholeSequences) {
  int seen = 0;
  for (const Law* law : laws())
    for (const Case& what : law->cases()) {
      if (read_bool(what.settings, "causal", true) || std::ranges::count(what.with, "offsets") > 0) continue;
      SCOPED_TRACE(std::string(law->name()) + " " + what.label);
      const Example x(*law, what);
      const Index last = x.outputs.at("o").shape()[2] - 1;
      EXPECT_EQ(error_of([&] { EXPECT_EQ(x.map(last).size() % x.inputs.at("q").shape()[1], 0u); }), "no error");
      ++seen;
    }
  EXPECT_GT(seen, 6);
}

TEST(WholeMap, OfAttentionIsTheSoftmaxOfItsProducts) {
  constexpr Index T = 5, S = 7, K = 4;
  const Example x(find_law("attention"), {.settings = {{"causal", "false"}, {"scale", "0.5"}},
                                          .sizes = {{"T", T}, {"S", S}, {"K", K}, {"H", 2}, {"Gq", 2}, {"Gk", 1}, {"Gv", 1}}});
  for (const Index h : {0, 1}) {
    const std::vector<double> map = x.map(h);
    ASSERT_EQ(map.size(), std::size_t(T * S));
    for (Index t = 0; t < T; ++t) {
      std::vector<double> w;
      double sum = 0;
      for (Index s = 0; s < S; ++s) {
        double dot = 0;
        for (Index i = 0; i < K; ++i) dot += x.at("q", t, h, i) * x.at("k", s, h, i);
        sum += w.emplace_back(std::exp(0.5 * dot));
      }
      for (Index s = 0; s < S; ++s) EXPECT_NEAR(map[t * S + s], w[s] / sum, 1e-12);
    }
  }
}

TEST(WholeMap, SaysWhatItDoesNotShow) {
  const Example x(find_law("attention"), {.settings = {{"causal", "false"}}});
  EXPECT_EQ(error_of([&] { (void)x.map(2); }), "whole_map: expected a head below 2, got 2");
  const Example one(find_law("attention"), {.settings = {{"causal", "false"}}, .with = {"offsets"}});
  EXPECT_EQ(error_of([&] { (void)one.map(0); }), "whole_map: expected one sequence with heads");
  const Example norm(find_law("attention"), {.settings = {{"causal", "false"}, {"normaliser", "l2"}}});
  EXPECT_EQ(error_of([&] { (void)norm.map(0); }), "whole_map: expected weights that do not depend on values");
}
}  // namespace
}  // namespace isomer
