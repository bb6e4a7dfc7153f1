#include "isomer/laws/scalar_decay/scalar_decay.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "isomer/base/error.h"
#include "isomer/laws/scalar_decay/scalar_decay_problem.h"

namespace isomer::scalar_decay_test {
namespace {

constexpr Index kChunk = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Named {
  std::string label;
  Draw setup;
};

// Every normaliser with every kind of gate it takes.
std::vector<Named> rules() {
  const char* normalisers[] = {"none", "sum", "max", "subtract"};
  const char* gates[] = {"no", "head", "token", "extreme"};
  std::vector<Named> all;
  for (int n = 0; n < 4; ++n)
    for (int decay = 0; decay < 4; ++decay)
      for (int input : {0, 2, 3}) {
        const bool gated = decay > 0 || input > 0;
        // Only `max` is stabilised: elsewhere input gates of 80 say nothing about the other gates.
        if ((n == 3 && gated) || (n < 2 && input == 3 && decay == 3)) continue;
        all.push_back({std::string(normalisers[n]) + ", " + gates[decay] + " decay, " + gates[input] + " input",
                       {.normaliser = Normaliser(n), .decay = Gate(decay), .input = Gate(input)}});
      }
  return all;
}

// Multiples of epsilon. The larger one is for `max` with input gates of ±80, where a stabiliser of that size is rounded.
double tolerance(const Draw& s) {
  const double steps = std::sqrt(double(s.T + 1));
  return (s.input == Gate::extreme                                                  ? 600
          : s.normaliser == Normaliser::max || s.normaliser == Normaliser::subtract ? 100
                                                                                    : 24) *
         steps;
}

template <class T>
void expect_matches(const Draw& setup, Form form, const std::string& label, bool with_tape = true) {
  Context context(2);
  const Results want = Problem<double>(setup).run(Form::reference, context, true);
  const Results got = Problem<T>(setup).run(form, context, true, with_tape);
  for (const auto& [name, values] : want)
    EXPECT_LE(error_of(got.at(name), values), tolerance(setup) * std::numeric_limits<T>::epsilon())
        << name << " of " << label << ", form " << int(form) << ", T = " << setup.T << ", " << sizeof(T) << " bytes, seed "
        << setup.seed;
}

void expect_forms_match(const Draw& setup, const std::string& label) {
  for (Form form : {Form::automatic, Form::step, Form::chunk, Form::parallel}) {
    if (form == Form::step && setup.direction == Direction::global) continue;
    expect_matches<float>(setup, form, label);
    expect_matches<double>(setup, form, label);
  }
}

TEST(ScalarDecay, FormsMatchTheReferenceAtAwkwardLengths) {
  for (auto [label, setup] : rules())
    for (Index T : {0, 1, 2, 15, 16, 17, 53, 63}) {
      setup.T = T;
      setup.chunk = kChunk;
      setup.initial = T % 2 == 1;
      setup.seed = std::uint64_t(T) + 1;
      expect_forms_match(setup, label);
    }
}

TEST(ScalarDecay, FormsMatchTheReferenceOnGroupsPacksAndStrides) {
  for (auto [label, setup] : rules()) {
    setup.chunk = kChunk;
    setup.initial = true;
    setup.eps = setup.normaliser == Normaliser::sum || setup.normaliser == Normaliser::max ? 0.25 : 0;
    Draw grouped = setup;
    grouped.Gq = 4, grouped.Gk = 1, grouped.V = 9;
    expect_forms_match(grouped, label + ", groups 4 1 2");
    grouped.Gq = 1, grouped.Gv = 4, grouped.K = 17;
    expect_forms_match(grouped, label + ", groups 1 1 4");
    Draw packed = setup;
    packed.B = 1, packed.T = 40, packed.offsets = {0, 3, 3, 37, 40};
    expect_forms_match(packed, label + ", packed");
    packed.layout = Layout::strided;
    expect_forms_match(packed, label + ", packed and strided");
    packed.initial = false;
    expect_forms_match(packed, label + ", packed, fresh");
  }
}

TEST(ScalarDecay, GlobalFormsMatchTheReference) {
  for (Normaliser n : {Normaliser::none, Normaliser::sum, Normaliser::subtract})
    // A sequence of one token has no gradient of q to compare.
    for (Index T : {0, 9, 17, 70}) {
      Draw setup{.normaliser = n, .T = T, .direction = Direction::global, .chunk = kChunk};
      expect_forms_match(setup, "global");
      if (n != Normaliser::subtract) setup.input = Gate::token;
      setup.Gk = 4, setup.B = 5;
      expect_forms_match(setup, "global, more heads");
      setup.B = 1, setup.offsets = {0, T / 2, T / 2, T}, setup.layout = Layout::strided;
      expect_forms_match(setup, "global, packed and strided");
    }
}

TEST(ScalarDecay, HeadsThatFillVectorsMatchTheReference) {
  for (auto [label, setup] : rules()) {
    setup.K = setup.V = 32;
    setup.B = 1, setup.T = 70, setup.chunk = kChunk;
    setup.Gq = setup.Gk = setup.Gv = 1;
    expect_matches<float>(setup, Form::chunk, label);
    setup.Gq = 8;  // chunk after chunk
    expect_matches<float>(setup, Form::chunk, label + ", eight heads");
    expect_matches<float>(setup, Form::chunk, label + ", eight heads, no tape", false);
  }
}

// Weights of a chunk's first rows are products of two factors, as many as the gates allow: no row may know of later ones.
TEST(ScalarDecay, LaterGatesChangeNoBitOfEarlierOutputs) {
  Context context(1);
  for (Normaliser n : {Normaliser::none, Normaliser::max})
    for (Index heads : {1, 8}) {
      const Draw setup{
          .normaliser = n, .decay = Gate::token, .input = Gate::token, .B = 1, .T = 40, .Gq = heads, .chunk = kChunk};
      const Results want = Problem<float>(setup).run(Form::chunk, context, false);
      for (Index t : {5, 20, 39}) {
        Problem<float> changed(setup);
        changed.decay.view(0, t, 0) = -50;
        changed.input.view(0, t, 0) = 10;
        const std::vector<double> o = changed.run(Form::chunk, context, false).at("o");
        const Index before = t * setup.H() * setup.V;
        EXPECT_TRUE(std::equal(o.begin(), o.begin() + before, want.at("o").begin())) << "gate " << t << ", " << heads << " heads";
        EXPECT_NE(o[before], want.at("o")[before]);
      }
    }
}

TEST(ScalarDecay, SubtractSurvivesLargeMeans) {
  for (Index heads : {1, 8}) {
    const Draw setup{.normaliser = Normaliser::subtract, .T = 300, .Gq = heads, .chunk = kChunk, .key_mean = 1000};
    Context context(2);
    const Results want = Problem<double>(setup).run(Form::reference, context, false);
    const Results got = Problem<float>(setup).run(Form::chunk, context, false);
    // Plain sums in float would lose 1000² · 300 · eps = 36.
    EXPECT_LE(error_of(got.at("o"), want.at("o")), 1e-4);
  }
}

// How far `form` is from the reference, in float: the worst of all results but one.
double worst_error(const Problem<double>& exact, const Problem<float>& p, Form form, const std::string& but = "") {
  Context context(2);
  const Results want = exact.run(Form::reference, context, true), got = p.run(form, context, true);
  double worst = 0;
  for (const auto& [name, values] : want)
    if (name != but) worst = std::max(worst, error_of(got.at(name), values));
  return worst;
}

// One sequence of so many heads of 16.
Draw heads_of_16(Index heads, Index T, Normaliser normaliser) {
  return {.normaliser = normaliser, .B = 1, .T = T, .Gq = heads, .Gk = heads, .Gv = heads, .K = 16, .V = 16};
}

// Sums about the first token alone, as one chunk has them, would be off by 1e-4.
TEST(ScalarDecay, LongSumsOfSubtractKeepTheirDigits) {
  for (Direction direction : {Direction::global, Direction::causal})
    for (Index heads : {1, 8}) {
      Draw setup = heads_of_16(heads, 2049, Normaliser::subtract);
      setup.direction = direction;
      const Problem<double> exact(setup);
      const Problem<float> p(setup);
      for (Form form : {Form::step, Form::chunk, Form::parallel}) {
        if (form == Form::step && direction == Direction::global) continue;
        EXPECT_LE(worst_error(exact, p, form), 2e-5) << heads << " heads, form " << int(form) << ", direction " << int(direction);
      }
    }
}

// Weights of e^−80 are near the end of floats, and what is a thousandth of them still counts.
TEST(ScalarDecay, SmallInputGatesOfMaxKeepTheirDigits) {
  for (double decay : {-0.15, -0.9})
    for (Index heads : {1, 8})
      for (bool last : {false, true}) {
        Draw setup = heads_of_16(heads, 200, Normaliser::max);
        setup.decay = setup.input = Gate::token;
        Problem<double> exact(setup);
        Problem<float> p(setup);
        const auto set = [&](auto& problem) {
          problem.decay.each([&](auto& x) { x = std::remove_reference_t<decltype(x)>(float(decay)); });
          problem.input.each([](auto& x) { x = -80; });
          for (Index h = 0; h < heads && last; ++h) problem.input.view(0, setup.T - 1, h) = 0;
        };
        set(exact), set(p);
        // A last token that is all its output is made of has no gradient of q but what rounding leaves.
        for (Form form : {Form::step, Form::chunk, Form::parallel})
          EXPECT_LE(worst_error(exact, p, form, last ? "grad_q" : ""), 1e-4)
              << heads << " heads, form " << int(form) << ", decay " << decay << ", last " << last;
      }
}

// The loss as a function of the problem's inputs, in double.
double loss(const Problem<double>& p, Context& context) {
  Results r = p.run(Form::reference, context, false);
  double sum = 0;
  const auto add = [&](const std::vector<double>& grad, const std::string& name) {
    for (std::size_t i = 0; i < grad.size(); ++i) sum += grad[i] * r.at(name)[i];
  };
  add(p.grad_o.values(), "o");
  Results final_gradients;
  p.grad_final.into(final_gradients, "final_");
  for (const auto& [name, grad] : final_gradients) add(grad, name);
  return sum;
}

TEST(ScalarDecay, ReferenceGradientsAreDifferences) {
  for (auto [label, setup] : rules()) {
    if (setup.decay == Gate::head || setup.input == Gate::extreme) continue;
    setup.T = 6, setup.B = 1, setup.K = 3, setup.V = 2, setup.Gq = 4, setup.Gk = 1;
    for (int variant = 0; variant < 3; ++variant) {
      setup.initial = variant == 1;
      setup.direction = variant == 2 ? Direction::global : Direction::causal;
      setup.seed = 5;
      if (variant == 2 && (setup.decay != Gate::none || setup.normaliser == Normaliser::max)) continue;
      // At a fixed scale: the stabiliser of the final state must not move with the differences.
      Problem<double> p(setup);
      if (setup.normaliser == Normaliser::max) p.grad_final = {};
      Context context(1);
      Results r;
      p.add_gradients(r, Form::reference, context, nullptr);
      const auto check = [&](const auto& input, const std::vector<double>& grad, const std::string& what) {
        laws_test::expect_differences(
            input, grad, [&] { return loss(p, context); }, what);
      };
      const std::string where = label + ", variant " + std::to_string(variant) + ": ";
      check(p.q, r.at("grad_q"), where + "q");
      check(p.k, r.at("grad_k"), where + "k");
      check(p.v, r.at("grad_v"), where + "v");
      if (setup.decay != Gate::none) check(p.decay, r.at("grad_log_decay"), where + "log_decay");
      if (setup.input != Gate::none) check(p.input, r.at("grad_log_input"), where + "log_input");
      if (!setup.initial) continue;
      check(p.initial.state, r.at("grad_initial_state"), where + "initial_state");
      if (setup.normaliser != Normaliser::none) check(p.initial.norm, r.at("grad_initial_norm"), where + "initial_norm");
      if (setup.normaliser == Normaliser::subtract)
        check(p.initial.value_sum, r.at("grad_initial_value_sum"), where + "initial_value_sum");
    }
  }
}

TEST(ScalarDecay, ThreadsDoNotChangeABit) {
  for (const auto& [label, setup] : rules()) laws_test::expect_same_for_threads<Problem<float>>(setup, kChunk, label);
}

TEST(ScalarDecay, ChunkSizesAgree) {
  for (auto [label, setup] : rules())
    for (Index chunk : {1, 7, 32, 48}) {
      setup.T = 100;
      setup.chunk = chunk;
      setup.initial = true;
      expect_matches<float>(setup, Form::chunk, label + ", chunk " + std::to_string(chunk));
    }
}

TEST(ScalarDecay, OutputsDoNotSeeLaterTokens) {
  const auto inputs = [](Problem<float>& p, auto change) {
    change(p.q), change(p.k), change(p.v), change(p.decay), change(p.input);
  };
  for (const auto& [label, setup] : rules())
    if (setup.decay != Gate::head) laws_test::expect_past_unchanged<Problem<float>>(setup, kChunk, 3.0f, inputs, label);
}

TEST(ScalarDecay, AStreamMayKeepItsStateInPlace) {
  for (const auto& [label, base] : rules()) {
    Draw setup = base;
    setup.B = 1, setup.T = 37, setup.chunk = 4, setup.V = 40;
    const Problem<double> p(setup);
    Context context(7);
    const Results want = p.run(Form::reference, context, false);
    StateArrays<double> state;
    state.make(setup, true);
    state.state.each([](double& x) { x = 0; }), state.norm.each([](double& x) { x = 0; });
    state.value_sum.each([](double& x) { x = 0; }), state.count.each([](double& x) { x = 0; });
    state.max.each([](double& x) { x = -1e30; });
    Array<double, 4> o;
    o.make({1, setup.T, setup.H(), setup.V}, Layout::dense);
    Index t = 0;
    for (Index length : {1, 1, 20, 0, 1, 14}) {
      const auto piece = [&](auto view) {
        if (!view.present()) return view;
        view.data += t * view.stride[1];
        view.shape[1] = length;
        return view;
      };
      ScalarDecayInputs<double> in = p.inputs();
      in.q = piece(in.q), in.k = piece(in.k), in.v = piece(in.v);
      in.log_decay = piece(in.log_decay), in.log_input = piece(in.log_input);
      in.initial = state.const_views();
      scalar_decay<double>(in, setup.options(), Form::automatic, {.o = piece(o.view), .final_states = state.views()}, context);
      t += length;
    }
    Results got{{"o", o.values()}};
    state.into(got, "final_");
    for (const auto& [name, values] : want)
      EXPECT_LE(error_of(got.at(name), values), tolerance(setup) * std::numeric_limits<double>::epsilon())
          << name << ", " << label;
  }
}

TEST(ScalarDecay, NothingSeenYieldsAFiniteMax) {
  Draw setup{.normaliser = Normaliser::max, .T = 0};
  Context context(1);
  for (Form form : {Form::reference, Form::step, Form::chunk}) {
    const Results r = Problem<float>(setup).run(form, context, false);
    for (double m : r.at("final_max")) EXPECT_EQ(float(m), -1e30f);
  }
}

TEST(ScalarDecay, ADecayOfZeroForgetsExactly) {
  for (Normaliser n : {Normaliser::none, Normaliser::sum, Normaliser::max}) {
    const Draw setup{.normaliser = n, .decay = Gate::token, .B = 1, .T = 21, .chunk = kChunk};
    Problem<float> p(setup);
    p.decay.each([](float& x) { x = float(-kInfinity); });
    Context context(1);
    const Results r = p.run(Form::chunk, context, true);
    for (double g : r.at("grad_log_decay")) EXPECT_EQ(g, 0);
    Problem<float> alone({.normaliser = n, .decay = Gate::token, .B = 1, .T = 21, .chunk = 1});
    alone.decay.each([](float& x) { x = float(-kInfinity); });
    EXPECT_LE(error_of(r.at("o"), alone.run(Form::chunk, context, false).at("o")), 4e-7);
  }
}

// What a call with one thing wrong says.
template <class Change>
std::string refusal(Change change, Form form = Form::chunk, const Draw& setup = {}) {
  Problem<float> p(setup);
  Context context(1);
  std::vector<float> memory(10000);
  ScalarDecayInputs<float> in = p.inputs();
  ScalarDecayOptions options = setup.options();
  ScalarDecayOutputs<float> out{.o = contiguous(memory.data(), {setup.B, setup.T, setup.H(), setup.V})};
  change(in, options, out);
  try {
    scalar_decay<float>(in, options, form, out, context);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ScalarDecay, SaysWhatWasExpected) {
  using In = ScalarDecayInputs<float>&;
  using Opt = ScalarDecayOptions&;
  using Out = ScalarDecayOutputs<float>&;
  const Draw gated{.decay = Gate::token};
  const Draw carried{.initial = true};
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.q = {}; }), "scalar_decay: expected q, k and v, got none of at least one of them");
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.v.shape[3] = 0; }), "scalar_decay: expected K > 0 and V > 0, got 5 and 0");
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.k.shape[1] = 4; }),
            "scalar_decay: expected k of shape [2, 19, 2, 5], got [2, 4, 2, 5]");
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.v.shape[2] = 3; }),
            "scalar_decay: expected heads that divide the largest count 3, got 2");
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.log_decay.shape[2] = 1; }, Form::chunk, gated),
            "scalar_decay: expected log_decay of shape [2, 19, 2], got [2, 19, 1]");
  EXPECT_EQ(refusal([](In in, Opt, Out) { in.initial.state.shape[0] = 1; }, Form::chunk, carried),
            "scalar_decay: expected initial_state of shape [2, 2, 5, 3], got [1, 2, 5, 3]");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.chunk = -1; }), "scalar_decay: expected chunk >= 0, got -1");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.eps = -1; }), "scalar_decay: expected eps >= 0, got -1");
  const float counts[] = {3, -1};
  EXPECT_EQ(refusal([&](In in, Opt o, Out) {
              o.normaliser = Normaliser::subtract;
              in.initial.count = contiguous(counts, {2});
            }),
            "scalar_decay: expected initial_count >= 0, got -1");
  EXPECT_EQ(refusal([](In, Opt, Out out) { out.o = {}; }), "scalar_decay: expected an o to write, got none");
  EXPECT_EQ(refusal([](In, Opt, Out out) {
              out.final_states.max = contiguous(out.o.data, {2, 2});
            }),
            "scalar_decay: expected final_max only with normaliser max");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.normaliser = Normaliser::subtract; }, Form::chunk, gated),
            "scalar_decay: expected no gates with normaliser subtract, got log_decay");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.direction = Direction::global; }, Form::chunk, gated),
            "scalar_decay: expected no log_decay without causality, got one");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.direction = Direction::global; }, Form::chunk, carried),
            "scalar_decay: expected no initial states without causality, got some");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.direction = Direction::global, o.normaliser = Normaliser::max; }),
            "scalar_decay: expected normaliser none, sum or subtract without causality, got max");
  EXPECT_EQ(refusal([](In, Opt o, Out) { o.direction = Direction::global; }, Form::step),
            "scalar_decay: expected form reference, chunk or parallel without causality, got step");
}

}  // namespace
}  // namespace isomer::scalar_decay_test
