#include "isomer/nn/optimiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "isomer/base/error.h"
#include "isomer/base/rng.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

/// A few parameters of all kinds; "w" has several blocks.
template <class T>
struct Store {
  Parameters<T> parameters;

  Store() {
    parameters.add({.name = "w", .shape = {150, 131}});
    parameters.add({.name = "gain", .shape = {7}, .decay = Decay::no});
    parameters.add({.name = "features", .shape = {5, 3}, .training = graph::Training::fixed});
    parameters.add({.name = "layer.0.gate", .shape = {3, 2}});
    std::uint64_t stream = 0;
    for (const Parameter<T>& p : parameters.all()) {
      Rng rng(1, stream++);
      for (T& x : p.values()) x = T(rng.normal());
    }
  }
  /// As a tape would: those named in `without` get none.
  void draw_gradients(std::uint64_t seed, double size, std::string_view without = {}) {
    parameters.zero_gradients();
    std::uint64_t stream = 0;
    for (const Parameter<T>& p : parameters.all()) {
      Rng rng(seed, stream++);
      if (!p.trained() || p.name() == without) continue;
      p.var.slot->written = true;
      for (T& g : p.gradient()) g = size == 0 ? T(0) : T(size * rng.normal());
    }
  }
};

/// The equations of the header, a number at a time.
struct Plain {
  OptimiserOptions o;
  std::map<std::string, std::vector<double>> w, m, v;
  double t = 0;

  template <class T>
  Plain(const Store<T>& store, OptimiserOptions options) : o(std::move(options)) {
    for (const Parameter<T>& p : store.parameters.all()) {
      w[p.name()].assign(p.values().begin(), p.values().end());
      m[p.name()].resize(p.values().size());
      v[p.name()].resize(p.values().size());
    }
  }
  template <class T>
  void step(const Store<T>& store, double base, double gate_factor, double gate_decay) {
    double square = 0;
    for (const Parameter<T>& p : store.parameters.all())
      for (const T g : p.gradient()) square += double(g) * double(g);
    const double norm = std::sqrt(square), scale = o.clip > 0 ? std::min(1.0, o.clip / norm) : 1;
    t += 1;
    for (const Parameter<T>& p : store.parameters.all()) {
      if (!p.trained()) continue;
      const bool gate = p.name() == "layer.0.gate";
      const double lr = base * (gate ? gate_factor : 1);
      const double decay = gate ? gate_decay : p.spec.decay == Decay::yes ? o.weight_decay : 0;
      for (std::size_t i = 0; i < p.values().size(); ++i) {
        const double g = p.gradient().empty() ? 0 : scale * double(p.gradient()[i]);
        double &wi = w[p.name()][i], &mi = m[p.name()][i], &vi = v[p.name()][i];
        double move = 0;
        if (o.kind == OptimiserKind::adamw) {
          mi = o.beta1 * mi + (1 - o.beta1) * g;
          vi = o.beta2 * vi + (1 - o.beta2) * g * g;
          move = mi / (1 - std::pow(o.beta1, t)) / (std::sqrt(vi / (1 - std::pow(o.beta2, t))) + o.eps);
        } else {
          move = mi = o.momentum * mi + g;
        }
        wi -= lr * (move + decay * wi);
      }
    }
  }
};

template <class T>
double worst_distance(const Plain& plain, const Store<T>& store) {
  double worst = 0;
  for (const Parameter<T>& p : store.parameters.all())
    for (std::size_t i = 0; i < p.values().size(); ++i) {
      const double off = std::abs(double(p.values()[i]) - plain.w.at(p.name())[i]);
      worst = off <= worst ? worst : off;  // NaN counts
    }
  return worst;
}

template <class T>
class OptimiserOf : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OptimiserOf, Types);

TYPED_TEST(OptimiserOf, FollowsItsEquation) {
  using T = TypeParam;
  Context context(2);
  for (const OptimiserKind kind : {OptimiserKind::adamw, OptimiserKind::sgd})
    for (const double clip : {0.0, 1.0}) {
      Store<T> store;
      OptimiserOptions options{.kind = kind, .clip = clip};
      options.groups = {{.match = "layer.*.gate", .lr_factor = 0.5, .weight_decay = 0.3}, {.match = "w"}};
      Plain plain(store, options);
      Optimiser<T> optimiser(store.parameters, options);
      for (std::uint64_t step = 0; step < 5; ++step) {
        // Large and small gradients, so that clipping sometimes acts; in step 2 some get none.
        store.draw_gradients(step, step % 2 == 0 ? 0.5 : 1e-3, step == 2 ? "gain" : "");
        plain.step(store, 0.1, 0.5, 0.3);
        optimiser.step(0.1, context);
      }
      // Values are near 1; each of five steps rounds a few times.
      const double limit = 60 * double(std::numeric_limits<T>::epsilon());
      EXPECT_LE(worst_distance(plain, store), limit) << name_of(kind) << " clip " << clip;
    }
}

TYPED_TEST(OptimiserOf, ReachesTheMinimumOfAQuadratic) {
  using T = TypeParam;
  Context context(1);
  for (const OptimiserKind kind : {OptimiserKind::adamw, OptimiserKind::sgd}) {
    Store<T> store;
    Optimiser<T> optimiser(store.parameters, {.kind = kind, .weight_decay = 0, .clip = 0});
    for (int step = 0; step < 300; ++step) {
      store.draw_gradients(0, 0);
      // Of (w − 3)² / 2 · curvature, curvatures from 0.5 to 1.5.
      for (const Parameter<T>& p : store.parameters.all())
        for (std::size_t i = 0; i < p.gradient().size(); ++i)
          p.gradient()[i] = T((double(p.values()[i]) - 3) * (0.5 + double(i % 11) / 10));
      (void)optimiser.step(0.1 * (1 - step / 300.0), context);
    }
    for (const Parameter<T>& p : store.parameters.all()) {
      const auto off = [](T w) { return !(std::abs(double(w) - 3) < 1e-3); };
      EXPECT_TRUE(!p.trained() || std::ranges::none_of(p.values(), off)) << name_of(kind) << " " << p.name();
    }
  }
}

template <class T>
std::vector<T> numbers(const Store<T>& store) {
  std::vector<T> all;
  for (const Parameter<T>& p : store.parameters.all()) all.insert(all.end(), p.values().begin(), p.values().end());
  return all;
}

TYPED_TEST(OptimiserOf, ContinuesExactlyFromItsState) {
  using T = TypeParam;
  Context context(2);
  for (const OptimiserKind kind : {OptimiserKind::adamw, OptimiserKind::sgd}) {
    Store<T> straight, resumed;
    Optimiser<T> one(straight.parameters, {.kind = kind});
    Tensors state, values;
    for (std::uint64_t step = 0; step < 6; ++step) {
      if (step == 3) {
        state = one.state();
        values = straight.parameters.tensors();
      }
      straight.draw_gradients(step, 0.1);
      one.step(0.05, context);
    }
    Optimiser<T> other(resumed.parameters, {.kind = kind});
    other.load(state);
    resumed.parameters.assign(values);
    EXPECT_EQ(other.steps(), 3);
    for (std::uint64_t step = 3; step < 6; ++step) {
      resumed.draw_gradients(step, 0.1);
      other.step(0.05, context);
    }
    EXPECT_EQ(numbers(straight), numbers(resumed)) << name_of(kind);
  }
}

TYPED_TEST(OptimiserOf, DoesTheSameWithEveryNumberOfThreads) {
  using T = TypeParam;
  std::vector<T> first;
  double norm = 0;
  for (const int threads : {1, 2, 7}) {
    Context context(threads);
    Store<T> store;
    Optimiser<T> optimiser(store.parameters, {});
    double last = 0;
    for (std::uint64_t step = 0; step < 3; ++step) {
      store.draw_gradients(step, 0.1);
      last = optimiser.step(0.05, context);
    }
    if (threads == 1) {
      first = numbers(store);
      norm = last;
    }
    EXPECT_EQ(numbers(store), first);
    EXPECT_EQ(last, norm);
  }
}

TEST(Optimiser, ChangesNothingWhenAGradientIsNotFinite) {
  Context context(1);
  Store<float> store;
  Optimiser<float> optimiser(store.parameters, {});
  store.draw_gradients(1, 1);
  store.parameters.find("gain").gradient()[3] = std::numeric_limits<float>::infinity();
  const std::vector<float> before = numbers(store);
  EXPECT_FALSE(std::isfinite(optimiser.step(0.1, context)));
  EXPECT_EQ(numbers(store), before);
  EXPECT_EQ(optimiser.steps(), 0);
}

TEST(Optimiser, LeavesFixedParametersAlone) {
  Context context(1);
  Store<double> store;
  const std::span<double> fixed = store.parameters.find("features").values();
  const std::vector<double> before(fixed.begin(), fixed.end());
  Optimiser<double> optimiser(store.parameters, {});
  store.draw_gradients(1, 1);
  optimiser.step(0.1, context);
  EXPECT_TRUE(std::ranges::equal(fixed, before));
  EXPECT_FALSE(optimiser.state().contains("m.features"));
}

TEST(Optimiser, RefusesWhatMakesNoSense) {
  Store<float> store;
  const auto refused = [&](OptimiserOptions options) {
    return tests::error_of([&] { Optimiser<float>(store.parameters, std::move(options)); });
  };
  EXPECT_EQ(refused({.beta1 = 1}), "optimiser: expected beta1 and beta2 in [0, 1), got 1 and 0.95");
  EXPECT_EQ(refused({.eps = 0}), "optimiser: expected eps > 0, got 0");
  EXPECT_EQ(refused({.momentum = -0.5}), "optimiser: expected momentum in [0, 1), got -0.5");
  EXPECT_EQ(refused({.weight_decay = -1}), "optimiser: expected weight_decay >= 0, got -1");
  EXPECT_EQ(refused({.clip = -1}), "optimiser: expected clip >= 0 (0: none), got -1");
  EXPECT_EQ(refused({.groups = {{.match = "w", .lr_factor = -1}}}), "optimiser: expected lr_factor >= 0 for w, got -1");
  EXPECT_EQ(refused({.groups = {{.match = "layer.*.bias"}}}),
            "optimiser: expected a parameter that belongs to the group layer.*.bias, found none");
  EXPECT_EQ(tests::error_of([] { (void)optimiser_named("adam"); }),
            "optimiser: expected adamw or sgd, got adam, did you mean adamw?");
}

TEST(Optimiser, HasTheGradientsOfAGroupInOneArray) {
  Store<float> store;
  const Optimiser<float> optimiser(store.parameters, {.groups = {{.match = "layer.*"}}});
  store.draw_gradients(3, 1, "gain");
  const std::span<const float> w = store.parameters.find("w").gradient(), gate = store.parameters.find("layer.0.gate").gradient();
  const std::vector<std::span<float>> groups = store.parameters.gradient_groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(gate.data(), groups[0].data());
  EXPECT_EQ(w.data(), groups[1].data());
  const std::span<const float> gain = store.parameters.find("gain").gradient();
  EXPECT_TRUE(gain.data() >= w.data() + w.size() && gain.data() + gain.size() <= groups[1].data() + groups[1].size());
  const auto sum = [](std::span<const float> all) {
    double squares = 0;
    for (const float x : all) squares += double(x) * double(x);
    return squares;
  };
  EXPECT_EQ(sum(gain), 0) << "what no gradient has reached is zero";
  EXPECT_DOUBLE_EQ(sum(groups[1]), sum(w)) << "nothing but gradients is in it";
  EXPECT_DOUBLE_EQ(sum(groups[0]), sum(gate));
}

TEST(Optimiser, OfAStoreThatHadOneTakesItsGradientsOver) {
  Context context(1);
  Store<float> store, fresh;
  { const Optimiser<float> before(store.parameters, {}); }
  store.parameters.freeze([](const std::string& name) { return name == "gain"; });
  fresh.parameters.freeze([](const std::string& name) { return name == "gain"; });
  Optimiser<float> again(store.parameters, {.groups = {{.match = "w"}}}), only(fresh.parameters, {.groups = {{.match = "w"}}});
  store.draw_gradients(3, 1);
  fresh.draw_gradients(3, 1);
  EXPECT_EQ(again.step(0.1, context), only.step(0.1, context));
  for (const Parameter<float>& p : store.parameters.all())
    EXPECT_TRUE(std::ranges::equal(p.values(), fresh.parameters.find(p.name()).values())) << p.name();
}

TEST(Optimiser, RefusesWeightsInFewerBits) {
  Parameters<float> parameters(Type::bf16);
  parameters.add({.name = "w", .shape = {2, 3}, .reader = Reader::products});
  EXPECT_EQ(tests::error_of([&] { Optimiser<float>(parameters, {}); }),
            "optimiser: expected w stored as F32, in which it is trained, got BF16");
}

TEST(Optimiser, RefusesTheStateOfAnother) {
  Context context(1);
  Store<float> store;
  Optimiser<float> optimiser(store.parameters, {});
  const auto refused = [&](auto change) {
    Tensors state = optimiser.state();
    change(state);
    return tests::error_of([&] { optimiser.load(state); });
  };
  EXPECT_EQ(refused([](Tensors&) {}), "no error");
  EXPECT_EQ(refused([](Tensors& s) { s.erase("v.gain"); }), "optimiser: expected the state v.gain, found none");
  EXPECT_EQ(refused([](Tensors& s) { s.emplace("m.gains", Tensor(Type::f32, {7})); }),
            "optimiser: there is no state m.gains, did you mean m.gain?");
  EXPECT_EQ(refused([](Tensors& s) { s["m.gain"] = Tensor(Type::f32, {8}); }),
            "optimiser: expected the state m.gain as F32 of the shape of its parameter, got F32 with 8 numbers");
  EXPECT_EQ(refused([](Tensors& s) { s["m.gain"] = s["m.gain"].cast(Type::f64); }),
            "optimiser: expected the state m.gain as F32 of the shape of its parameter, got F64 with 7 numbers");
  EXPECT_EQ(refused([](Tensors& s) { s["step"].data<std::int64_t>()[0] = -1; }), "optimiser: expected step >= 0, got -1");
}

}  // namespace
}  // namespace isomer
