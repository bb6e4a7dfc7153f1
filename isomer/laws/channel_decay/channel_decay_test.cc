#include "isomer/laws/channel_decay/channel_decay.h"

#include <gtest/gtest.h>

#include "isomer/base/error.h"
#include "isomer/laws/channel_decay/channel_decay_problem.h"

namespace isomer::channel_decay_test {
namespace {

// More than one block of 12 tokens, with a rest.
constexpr Index kChunk = 28;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Named {
  std::string label;
  Draw setup;
};

std::vector<Named> rules() {
  std::vector<Named> all;
  for (Read read : {Read::after, Read::before})
    for (Gates gates : {Gates::weak, Gates::extreme, Gates::strong}) {
      const char* names[] = {", weak decays", ", extreme decays", ", strong decays"};
      all.push_back(
          {(read == Read::after ? "after" : "before") + std::string(names[int(gates)]), {.read = read, .gates = gates}});
    }
  return all;
}

// Multiples of epsilon: sums over some tokens and channels, each weight with the errors of its decays.
double tolerance(const Draw& s) { return 24 * std::sqrt(double(s.T + 1)); }

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
    expect_matches<float>(setup, form, label);
    expect_matches<double>(setup, form, label);
  }
}

TEST(ChannelDecay, FormsMatchTheReferenceAtAwkwardLengths) {
  for (auto [label, setup] : rules())
    for (Index T : {0, 1, 2, 11, 12, 13, 27, 28, 29, 63, 130}) {
      setup.T = T;
      setup.chunk = kChunk;
      setup.initial = T % 2 == 1;
      setup.bonus = T % 3 != 0;
      setup.seed = std::uint64_t(T) + 1;
      expect_forms_match(setup, label);
    }
}

TEST(ChannelDecay, FormsMatchTheReferenceOnGroupsPacksAndStrides) {
  for (auto [label, setup] : rules()) {
    setup.chunk = kChunk;
    setup.initial = true;
    Draw grouped = setup;
    grouped.Gq = 4, grouped.Gk = 1, grouped.V = 9;
    expect_forms_match(grouped, label + ", groups 4 1 2");
    grouped.Gq = 1, grouped.Gv = 4, grouped.K = 17;
    expect_forms_match(grouped, label + ", groups 1 1 4");
    Draw packed = setup;
    packed.B = 1, packed.T = 70, packed.offsets = {0, 3, 3, 67, 70};
    expect_forms_match(packed, label + ", packed");
    packed.layout = Layout::strided;
    expect_forms_match(packed, label + ", packed and strided");
    packed.initial = false;
    expect_forms_match(packed, label + ", packed, fresh");
  }
}

TEST(ChannelDecay, HeadsThatFillVectorsMatchTheReference) {
  for (auto [label, setup] : rules())
    for (Index D : {32, 48}) {
      setup.K = setup.V = D;
      setup.B = 1, setup.T = 130, setup.chunk = kChunk;
      setup.Gq = setup.Gk = setup.Gv = 1;
      expect_matches<float>(setup, Form::chunk, label);
      setup.Gq = 9;  // chunk after chunk
      expect_matches<float>(setup, Form::chunk, label + ", nine heads");
      expect_matches<float>(setup, Form::chunk, label + ", nine heads, no tape", false);
    }
}

// The loss as a function of the problem's inputs, in double.
double loss(const Problem<double>& p, Context& context) {
  const Results r = p.run(Form::reference, context, false);
  double sum = 0;
  const auto add = [&](const std::vector<double>& grad, const std::vector<double>& x) {
    for (std::size_t i = 0; i < grad.size(); ++i) sum += grad[i] * x[i];
  };
  add(p.grad_o.values(), r.at("o"));
  add(p.grad_final.values(), r.at("final_state"));
  return sum;
}

TEST(ChannelDecay, ReferenceGradientsAreDifferences) {
  for (auto [label, setup] : rules()) {
    // Of strong decays nothing is left in differences; the goldens have them.
    if (setup.gates == Gates::strong) continue;
    setup.T = 6, setup.B = 1, setup.K = 3, setup.V = 2, setup.Gq = 4, setup.Gk = 1, setup.seed = 5, setup.initial = true;
    Problem<double> p(setup);
    Context context(1);
    Results r;
    p.add_gradients(r, Form::reference, context, nullptr);
    const auto check = [&](const auto& input, const std::vector<double>& grad, const std::string& what) {
      laws_test::expect_differences(
          input, grad, [&] { return loss(p, context); }, what);
    };
    check(p.q, r.at("grad_q"), label + ": q");
    check(p.k, r.at("grad_k"), label + ": k");
    check(p.v, r.at("grad_v"), label + ": v");
    check(p.decay, r.at("grad_log_decay"), label + ": log_decay");
    check(p.initial, r.at("grad_initial_state"), label + ": initial_state");
    if (setup.has_bonus()) check(p.bonus, r.at("grad_bonus"), label + ": bonus");
  }
}

TEST(ChannelDecay, ThreadsDoNotChangeABit) {
  for (const auto& [label, setup] : rules()) laws_test::expect_same_for_threads<Problem<float>>(setup, kChunk, label);
}

TEST(ChannelDecay, ChunkSizesAgree) {
  for (auto [label, setup] : rules())
    for (Index chunk : {1, 7, 12, 36, 48, 60}) {
      setup.T = 100;
      setup.chunk = chunk;
      setup.initial = true;
      expect_matches<float>(setup, Form::chunk, label + ", chunk " + std::to_string(chunk));
    }
}

TEST(ChannelDecay, OutputsDoNotSeeLaterTokens) {
  const auto inputs = [](Problem<float>& p, auto change) { change(p.q), change(p.k), change(p.v), change(p.decay); };
  for (const auto& [label, setup] : rules()) laws_test::expect_past_unchanged<Problem<float>>(setup, kChunk, 0.1f, inputs, label);
}

TEST(ChannelDecay, AStreamMayKeepItsStateInPlace) {
  for (const auto& [label, base] : rules()) {
    Draw setup = base;
    setup.B = 1, setup.T = 37, setup.chunk = 4, setup.V = 40;
    const Problem<double> p(setup);
    Context context(7);
    const Results want = p.run(Form::reference, context, false);
    Array<double, 4> state, o;
    state.make({1, setup.H(), setup.K, setup.V}, Layout::dense);
    state.each([](double& x) { x = 0; });
    o.make({1, setup.T, setup.H(), setup.V}, Layout::dense);
    Index t = 0;
    for (Index length : {1, 1, 20, 0, 1, 14}) {
      const auto piece = [&](auto view) { return slice(view, 1, t, length); };
      ChannelDecayInputs<double> in = p.inputs();
      in.q = piece(in.q), in.k = piece(in.k), in.v = piece(in.v), in.log_decay = piece(in.log_decay);
      in.initial_state = state.view;
      channel_decay<double>(in, setup.options(), Form::automatic, {.o = piece(o.view), .final_state = state.view}, context);
      t += length;
    }
    const double limit = tolerance(setup) * std::numeric_limits<double>::epsilon();
    EXPECT_LE(error_of(o.values(), want.at("o")), limit) << label;
    EXPECT_LE(error_of(state.values(), want.at("final_state")), limit) << label;
  }
}

TEST(ChannelDecay, ADecayOfZeroForgetsExactly) {
  for (Read read : {Read::after, Read::before})
    for (double forget : {-kInfinity, -1e4}) {
      Problem<float> p({.read = read, .B = 1, .T = 41, .initial = true, .chunk = kChunk});
      p.decay.each([&](float& x) { x = float(forget); });
      Context context(1);
      const Results r = p.run(Form::chunk, context, true);
      for (double g : r.at("grad_log_decay")) EXPECT_EQ(g, 0);
      // The first output that reads before the token still sees the initial state.
      for (double g : r.at("grad_initial_state")) EXPECT_TRUE(read == Read::before || g == 0);
      p.initial.each([](float& x) { x = 1e30f; });
      const Results moved = p.run(Form::chunk, context, false);
      EXPECT_EQ(moved.at("final_state"), r.at("final_state"));
    }
}

// The usual reverse sum of q·dq − k·dk leaves nothing of gradients as small as these: each must be right by itself.
TEST(ChannelDecay, GradientsOfStrongDecaysAreRelativelyRight) {
  for (Read read : {Read::after, Read::before})
    for (Index heads : {1, 8}) {
      const Draw setup{.read = read, .gates = Gates::strong, .B = 1, .T = 100, .Gq = heads, .K = 8, .V = 4, .chunk = kChunk};
      Context context(2);
      const std::vector<double> want = Problem<double>(setup).run(Form::reference, context, true).at("grad_log_decay");
      const std::vector<double> got = Problem<float>(setup).run(Form::chunk, context, true).at("grad_log_decay");
      double worst = 0, typical = 0;
      for (double g : want) typical += std::abs(g) / double(want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(std::isfinite(got[i]));
        worst = std::max(worst, std::abs(got[i] - want[i]) / (std::abs(want[i]) + 1e-3 * typical));
      }
      EXPECT_LE(worst, 1e-3);
    }
}

TEST(ChannelDecay, NoDecayIsPlainLinearAttention) {
  Problem<double> p({.B = 1, .T = 30, .chunk = kChunk});
  p.decay.each([](double& x) { x = 0; });
  Context context(1);
  const std::vector<double> o = p.run(Form::chunk, context, false).at("o");
  const double scale = 1 / std::sqrt(double(p.s.K));
  std::vector<double> want;
  for (Index t = 0; t < p.s.T; ++t)
    for (Index h = 0; h < p.s.H(); ++h)
      for (Index c = 0; c < p.s.V; ++c) {
        double sum = 0;
        for (Index j = 0; j <= t; ++j)
          for (Index a = 0; a < p.s.K; ++a) sum += p.q.view(0, t, h, a) * p.k.view(0, j, h, a) * p.v.view(0, j, h, c);
        want.push_back(scale * sum);
      }
  EXPECT_LE(error_of(o, want), 1e-14);
}

// What a call with one thing wrong says.
template <class Change>
std::string refusal(Change change, const Draw& setup = {}) {
  Problem<float> p(setup);
  Context context(1);
  std::vector<float> memory(10000);
  ChannelDecayInputs<float> in = p.inputs();
  ChannelDecayOptions options = setup.options();
  ChannelDecayOutputs<float> out{.o = contiguous(memory.data(), {setup.B, setup.T, setup.H(), setup.V})};
  ChannelDecayGradients<float> grad;
  change(in, options, out, grad);
  try {
    channel_decay<float>(in, options, Form::chunk, out, context);
    channel_decay_vjp<float>(in, options, Form::chunk, {.o = out.o}, grad, context);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ChannelDecay, SaysWhatWasExpected) {
  using In = ChannelDecayInputs<float>&;
  using Opt = ChannelDecayOptions&;
  using Out = ChannelDecayOutputs<float>&;
  using Grad = ChannelDecayGradients<float>&;
  const Draw carried{.initial = true}, reads_before{.read = Read::before};
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.log_decay = {}; }),
            "channel_decay: expected q, k, v and log_decay, got none of at least one of them");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.v.shape[3] = 0; }), "channel_decay: expected K > 0 and V > 0, got 5 and 0");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.k.shape[1] = 4; }),
            "channel_decay: expected k of shape [2, 19, 2, 5], got [2, 4, 2, 5]");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.v.shape[2] = 3; }),
            "channel_decay: expected heads that divide the largest count 3, got 2");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.log_decay.shape[3] = 1; }),
            "channel_decay: expected log_decay of shape [2, 19, 2, 5], got [2, 19, 2, 1]");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.bonus.shape[0] = 1; }, reads_before),
            "channel_decay: expected bonus of shape [2, 5], got [1, 5]");
  EXPECT_EQ(refusal([](In, Opt o, Out, Grad) { o.read = Read::after; }, reads_before),
            "channel_decay: expected bonus only with read before, got it with read after");
  EXPECT_EQ(refusal([](In in, Opt, Out, Grad) { in.initial_state.shape[0] = 1; }, carried),
            "channel_decay: expected initial_state of shape [2, 2, 5, 3], got [1, 2, 5, 3]");
  EXPECT_EQ(refusal([](In, Opt o, Out, Grad) { o.chunk = -1; }), "channel_decay: expected chunk >= 0, got -1");
  EXPECT_EQ(refusal([](In, Opt, Out out, Grad) { out.o = {}; }), "channel_decay: expected an o to write, got none");
  EXPECT_EQ(refusal([](In, Opt, Out out, Grad) { out.final_state = slice(out.o, 1, 0, 1); }),
            "channel_decay: expected final_state of shape [2, 2, 5, 3], got [2, 1, 2, 3]");
  EXPECT_EQ(refusal([](In, Opt, Out out, Grad g) { g.q = slice(out.o, 1, 0, 1); }),
            "channel_decay: expected grad_q of shape [2, 19, 2, 5], got [2, 1, 2, 3]");
  EXPECT_EQ(refusal([](In, Opt, Out out, Grad g) {
              g.bonus = contiguous(out.o.data, {2, 5});
            }),
            "channel_decay: expected grad_bonus only with bonus");
}

}  // namespace
}  // namespace isomer::channel_decay_test
