#include "isomer/laws/delta/delta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/laws/check.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/delta/delta_problem.h"

namespace isomer::delta_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_close(const Tensors& got, const Tensors& want, Type type, const std::string& label) {
  for (const auto& [name, tensor] : want)
    EXPECT_LE(relative_error(got.at(name), tensor, scale_of(name, want)), delta_law().tolerance(name) * epsilon_of(type))
        << name << " of " << label << ", " << name_of(type);
}

// Every form and type of the problem against the reference in double.
void expect_forms_match(const Problem& problem, const DeltaOptions& options, const std::string& label) {
  Context context(2);
  const Tensors want = run(problem.inputs(Type::f64), options, Form::reference, {}, context);
  for (Type type : {Type::f32, Type::f64})
    for (Form form : {Form::automatic, Form::step, Form::chunk})
      for (bool tape : form == Form::chunk ? std::vector{true, false} : std::vector{true})
        expect_close(run(problem.inputs(type), options, form, {.tape = tape}, context), want, type,
                     label + ", form " + std::string(name_of(form)) + (tape ? "" : ", no tape"));
}

TEST(Delta, ExtremeDecaysMatchTheReference) {
  for (Kind kind : {Kind::gated, Kind::kda, Kind::rwkv7})
    for (Index heads : {1, 8})  // slices of the state, and heads side by side
      for (double common : {0.0, -3.0, -1e4, -kInfinity})
        for (Index T : {7, 90})
          expect_forms_match({.kind = kind, .T = T, .H = heads, .decay = common, .extreme = true}, {.l2norm = true},
                             name_of(kind) + ", " + std::to_string(heads) + " heads, T = " + std::to_string(T) + ", decay " +
                                 std::to_string(common));
}

// All gradients of gates are small then: errors are those of what passes through them, not of what does not.
TEST(Delta, GatesThatForgetNearlyAllHaveTheirGradients) {
  Context context(2);
  for (Kind kind : {Kind::gated, Kind::kda, Kind::rwkv7})
    for (Index heads : {1, 8})
      for (double decay : {-4.0, -10.0, -20.0})
        for (Index T : {7, 90}) {
          const Problem problem{.kind = kind, .T = T, .H = heads, .decay = decay};
          const Tensors want = run(problem.inputs(Type::f64), {.l2norm = true}, Form::reference, {}, context);
          for (Type type : {Type::f32, Type::f64}) {
            const Tensors got = run(problem.inputs(type), {.l2norm = true}, Form::chunk, {}, context);
            EXPECT_LE(relative_error(got.at("grad_log_decay"), want.at("grad_log_decay")), 32 * epsilon_of(type))
                << name_of(kind) << ", " << heads << " heads, T = " << T << ", decay " << decay << ", " << name_of(type);
          }
        }
}

TEST(Delta, LaterGatesChangeNoBitOfEarlierOutputs) {
  Context context(1);
  for (Kind kind : {Kind::gated, Kind::kda, Kind::rwkv7})
    for (Index heads : {1, 8}) {
      const Problem problem{.kind = kind, .T = 40, .H = heads};
      const Tensors first = run(problem.inputs(Type::f32), {}, Form::chunk, {}, context);
      const float* want = first.at("o").data<float>();
      for (Index t : {1, 6, 21, 39}) {
        Tensors changed = problem.inputs(Type::f32);
        const Tensor& gates = changed.at("log_decay");
        put(gates, t * gates.size() / problem.T, -100);
        const Tensors second = run(changed, {}, Form::chunk, {}, context);
        const float* o = second.at("o").data<float>();
        const Index before = t * heads * problem.V;
        EXPECT_TRUE(std::equal(o, o + before, want)) << name_of(kind) << ", gate " << t << ", " << heads << " heads";
        EXPECT_FALSE(std::equal(o + before, o + second.at("o").size(), want + before));
      }
    }
}

TEST(Delta, ChunkSizesAgree) {
  for (Kind kind : kKinds)
    for (Index chunk : {1, 5, 6, 16, 24, 37, 64})
      for (bool extreme : {false, true})
        expect_forms_match({.kind = kind, .T = 77, .H = 2, .extreme = extreme}, {.l2norm = true, .chunk = chunk},
                           name_of(kind) + ", chunk " + std::to_string(chunk));
}

TEST(Delta, ThreadsDoNotChangeABit) {
  Context one(1), two(2), seven(7);
  for (Kind kind : kKinds)
    for (Index heads : {1, 3, 9})
      for (bool tape : {true, false}) {
        const Tensors in = Problem{.kind = kind, .T = 130, .H = heads, .V = 50, .extreme = true}.inputs(Type::f32);
        const Tensors want = run(in, {}, Form::chunk, {.tape = tape}, one);
        for (Context* many : {&two, &seven})
          for (const auto& [name, x] : run(in, {}, Form::chunk, {.tape = tape}, *many))
            EXPECT_EQ(std::memcmp(x.bytes(), want.at(name).bytes(), std::size_t(x.size()) * sizeof(float)), 0)
                << name << " of " << name_of(kind) << ", " << heads << " heads, " << many->threads() << " threads";
      }
}

TEST(Delta, StridesDoNotMatter) {
  Context context(2);
  for (Kind kind : kKinds)
    for (Form form : {Form::reference, Form::step, Form::chunk}) {
      const Problem problem{.kind = kind, .T = 53, .H = 3};
      const Tensors in = problem.inputs(Type::f32), want = run(in, {}, form, {}, context);
      const Tensors got = run(in, {}, form, {.strided = true}, context);
      for (const auto& [name, tensor] : want)
        EXPECT_EQ(relative_error(got.at(name), tensor), 0) << name << " of " << name_of(kind);
    }
}

TEST(Delta, ADecayOfZeroForgetsExactly) {
  Context context(1);
  for (Kind kind : {Kind::gated, Kind::kda})
    for (Type type : {Type::f32, Type::f64}) {
      const Problem problem{.kind = kind, .T = 30, .H = 1, .decay = -kInfinity};
      const Tensors out = run(problem.inputs(type), {}, Form::chunk, {}, context);
      for (Index i = 0; i < out.at("grad_log_decay").size(); ++i) EXPECT_EQ(number(out.at("grad_log_decay"), i), 0);
      for (Index i = 0; i < out.at("grad_initial_state").size(); ++i) EXPECT_EQ(number(out.at("grad_initial_state"), i), 0);
    }
}

// β = 1 with a key of length one writes v: it can be read back exactly, and only the last value of a key is kept.
TEST(Delta, OverwritesWhatAKeyHeld) {
  Context context(1);
  const Index T = 40, K = 4, V = 3;
  Tensors in;
  for (const char* name : {"q", "k"}) in[name] = Tensor(Type::f64, {1, T, 1, K});
  in["v"] = Tensor(Type::f64, {1, T, 1, V});
  in["beta"] = Tensor(Type::f64, {1, T, 1});
  for (Index t = 0; t < T; ++t) {
    for (Index a = 0; a < K; ++a) {
      in.at("k").data<double>()[t * K + a] = a == t * 3 % K ? 1 : 0;
      in.at("q").data<double>()[t * K + a] = a == (t * 3 + 3 * (K - 2)) % K ? 1 : 0;  // the key of two tokens ago
    }
    for (Index c = 0; c < V; ++c) in.at("v").data<double>()[t * V + c] = double(10 * t + c);
    in.at("beta").data<double>()[t] = 1;
  }
  for (Form form : {Form::reference, Form::step, Form::chunk}) {
    const Tensors out = run(in, {.scale = 1.0}, form, {}, context);
    for (Index t = 2; t < T; ++t)
      for (Index c = 0; c < V; ++c) EXPECT_NEAR(number(out.at("o"), t * V + c), double(10 * (t - 2) + c), 1e-12);
  }
}

// The delta rule with a decay of every key is the low-rank rule with a = −β e^g ∘ k, b = k and values β v.
TEST(Delta, IsASpecialCaseOfTheLowRankRule) {
  Context context(1);
  const Problem problem{.kind = Kind::kda, .T = 61, .H = 2};
  Tensors in = problem.inputs(Type::f64);
  const Tensors want = run(in, {}, Form::chunk, {}, context);
  const Index K = in.at("k").shape()[3], V = in.at("v").shape()[3];
  in["a"] = in.at("k").clone(), in["b"] = in.at("k").clone();
  const double *beta = in.at("beta").data<double>(), *decay = in.at("log_decay").data<double>();
  for (Index i = 0; i < in.at("a").size(); ++i) in.at("a").data<double>()[i] *= -beta[i / K] * std::exp(decay[i]);
  for (Index i = 0; i < in.at("v").size(); ++i) in.at("v").data<double>()[i] *= beta[i / V];
  in.erase("beta");
  const Tensors got = run(in, {}, Form::chunk, {}, context);
  for (const char* name : {"o", "final_state", "grad_q", "grad_initial_state"})
    EXPECT_LE(relative_error(got.at(name), want.at(name)), 1e-13) << name;
}

TEST(Delta, AStreamMayKeepItsStateInPlace) {
  for (Kind kind : kKinds) {
    Context context(7);
    const Problem problem{.kind = kind, .T = 37, .H = 2};
    Tensors in = problem.inputs(Type::f64);
    const Tensors want = run(in, {}, Form::reference, {}, context);
    const Tensor state = in.at("initial_state").clone(), o(Type::f64, want.at("o").shape());
    const DeltaInputs<double> all = typed<double>(in);
    Index t = 0;
    for (Index length : {1, 1, 20, 0, 1, 14}) {
      const auto piece = [&](auto view) { return slice(view, 1, t, length); };
      DeltaInputs<double> part{.q = piece(all.q), .k = piece(all.k), .v = piece(all.v)};
      part.beta = piece(all.beta), part.log_decay = piece(all.log_decay);
      part.key_log_decay = piece(all.key_log_decay), part.a = piece(all.a), part.b = piece(all.b);
      part.initial_state = state.view<const double, 4>();
      delta<double>(part, {}, Form::automatic, {.o = piece(o.view<double, 4>()), .final_state = state.view<double, 4>()},
                    context);
      t += length;
    }
    EXPECT_LE(relative_error(o, want.at("o")), 1e-13) << name_of(kind);
    EXPECT_LE(relative_error(state, want.at("final_state")), 1e-13) << name_of(kind);
  }
}

// A NaN spoils its own head only.
TEST(Delta, ANumberThatIsNoneStaysInItsHead) {
  Context context(2);
  for (Kind kind : kKinds) {
    const Problem problem{.kind = kind, .T = 60, .H = 9};
    const Tensors in = problem.inputs(Type::f32), want = run(in, {}, Form::chunk, {}, context);
    in.at("v").data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    const Tensors got = run(in, {}, Form::chunk, {}, context);
    const Index V = want.at("o").shape()[3], H = problem.H;
    for (Index i = 0; i < want.at("o").size(); ++i)
      ASSERT_TRUE(i / V % H == 0 || number(got.at("o"), i) == number(want.at("o"), i)) << i;
    EXPECT_TRUE(std::isnan(number(got.at("o"), 0)));
  }
}

// What a call with one thing wrong says.
template <class Change>
std::string refusal(Kind kind, Change change) {
  const Problem problem{.kind = kind, .T = 5, .H = 2};
  Tensors in = problem.inputs(Type::f32);
  std::vector<float> memory(1000);
  Context context(1);
  struct {
    DeltaInputs<float> in;
    DeltaOptions options = {};
    DeltaOutputs<float> out;
    DeltaGradients<float> grad = {};
    Form form = Form::chunk;
  } call;
  call.in = typed<float>(in);
  call.out.o = contiguous(memory.data(), {1, 5, 2, in.at("v").shape()[3]});
  change(call);
  try {
    delta<float>(call.in, call.options, call.form, call.out, context);
    delta_vjp<float>(call.in, call.options, call.form, {}, call.grad, context);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(Delta, SaysWhatWasExpected) {
  const auto plain = [](auto change) { return refusal(Kind::plain, change); };
  const auto low = [](auto change) { return refusal(Kind::rwkv7, change); };
  const Index K = Problem{}.K, V = Problem{}.V;
  const std::string k = std::to_string(K), v = std::to_string(V);
  EXPECT_EQ(plain([](auto&) {}), "nothing");
  EXPECT_EQ(plain([](auto& c) { c.in.q = {}; }), "delta: expected q, k and v, got none of at least one of them");
  EXPECT_EQ(plain([](auto& c) { c.in.v.shape[3] = 0; }), "delta: expected K > 0 and V > 0, got " + k + " and 0");
  EXPECT_EQ(plain([](auto& c) { c.in.k.shape[1] = 4; }),
            "delta: expected k of shape [1, 5, 2, " + k + "], got [1, 4, 2, " + k + "]");
  EXPECT_EQ(plain([](auto& c) { c.in.v.shape[2] = 3; }), "delta: expected heads that divide the largest count 3, got 2");
  EXPECT_EQ(plain([](auto& c) { c.in.beta.shape[2] = 1; }), "delta: expected beta of shape [1, 5, 2], got [1, 5, 1]");
  EXPECT_EQ(refusal(Kind::gated, [](auto& c) { c.in.log_decay.shape[2] = 1; }),
            "delta: expected log_decay of shape [1, 5, 2], got [1, 5, 1]");
  EXPECT_EQ(low([](auto& c) { c.in.key_log_decay.shape[3] = 1; }),
            "delta: expected log_decay of shape [1, 5, 2, " + k + "], got [1, 5, 2, 1]");
  EXPECT_EQ(low([](auto& c) { c.in.a.shape[3] = 1; }), "delta: expected a of shape [1, 5, 2, " + k + "], got [1, 5, 2, 1]");
  EXPECT_EQ(low([](auto& c) { c.in.b.shape[3] = 1; }), "delta: expected b of shape [1, 5, 2, " + k + "], got [1, 5, 2, 1]");
  EXPECT_EQ(low([](auto& c) { c.in.b = {}; }), "delta: expected both a and b or neither, got a");
  EXPECT_EQ(low([](auto& c) { c.in.a = {}; }), "delta: expected both a and b or neither, got b");
  EXPECT_EQ(plain([](auto& c) { c.in.beta = {}; }), "delta: expected either beta or a and b, got none of them");
  EXPECT_EQ(low([](auto& c) {
              c.in.beta = contiguous(c.out.o.data, {1, 5, 2});
            }),
            "delta: expected either beta or a and b, got all of them");
  EXPECT_EQ(refusal(Kind::kda, [](auto& c) { c.in.log_decay = c.in.beta; }),
            "delta: expected a log_decay of the head or of every key, got both");
  EXPECT_EQ(low([](auto& c) { c.in.key_log_decay = {}; }), "delta: expected a log_decay of every key with a and b, got none");
  EXPECT_EQ(low([](auto& c) {
              c.in.key_log_decay = {}, c.in.log_decay = contiguous(c.out.o.data, {1, 5, 2});
            }),
            "delta: expected a log_decay of every key with a and b, got one of the head");
  EXPECT_EQ(plain([](auto& c) { c.in.initial_state.shape[0] = 2; }),
            "delta: expected initial_state of shape [1, 2, " + k + ", " + v + "], got [2, 2, " + k + ", " + v + "]");
  EXPECT_EQ(plain([](auto& c) { c.options.chunk = -1; }), "delta: expected chunk >= 0, got -1");
  EXPECT_EQ(plain([](auto& c) { c.form = Form::parallel; }), "delta: expected form auto, reference, step or chunk, got parallel");
  EXPECT_EQ(plain([](auto& c) { c.out.o = {}; }), "delta: expected an o to write, got none");
  EXPECT_EQ(plain([](auto& c) {
              c.grad.log_decay = contiguous(c.out.o.data, {1, 5, 2});
            }),
            "delta: expected grad_log_decay only with log_decay");
  EXPECT_EQ(low([](auto& c) { c.grad.beta = contiguous(c.out.o.data, {1, 5, 2}); }), "delta: expected grad_beta only with beta");
  EXPECT_EQ(plain([](auto& c) { c.grad.a = {c.out.o.data, c.in.k.shape, c.in.k.stride}; }), "delta: expected grad_a only with a");
}

}  // namespace
}  // namespace isomer::delta_test
