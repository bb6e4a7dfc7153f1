#include "isomer/laws/scan/scan.h"

#include <gtest/gtest.h>

#include <utility>

#include "isomer/base/error.h"
#include "isomer/laws/random.h"
#include "isomer/laws/scan/scan_draw.h"
#include "tests/error_of.h"

namespace isomer::scan_test {
namespace {

constexpr Kind kKinds[] = {Kind::real, Kind::complex, Kind::s6};
constexpr Index kChunk = 16;

std::string label(const Draw& d) {
  const char* kinds[] = {"real", "complex", "s6"};
  return std::string(kinds[int(d.kind)]) + (d.gates == Gates::extreme ? ", extreme" : "") +
         (d.layout == Layout::strided ? ", strided" : "") + ", T " + std::to_string(d.T) + ", C " + std::to_string(d.C) + ", N " +
         std::to_string(d.N) + ", chunk " + std::to_string(d.chunk) + ", seed " + std::to_string(d.seed);
}

using laws_test::error_of;

template <class T>
void expect_matches(const Draw& draw, Form form) {
  Context context(2);
  const Results want = run<double>(draw, Form::reference, context), got = run<T>(draw, form, context);
  // A sum over up to 200 tokens or channels, of products of two or three rounded numbers.
  for (const auto& [name, values] : want)
    EXPECT_LE(error_of(got.at(name), values), 32 * std::numeric_limits<T>::epsilon())
        << name << " of " << label(draw) << ", form " << int(form) << ", " << sizeof(T) << " bytes";
}

void expect_forms_match(const Draw& draw) {
  for (Form form : {Form::automatic, Form::step, Form::chunk}) {
    expect_matches<float>(draw, form);
    expect_matches<double>(draw, form);
  }
}

TEST(Scan, FormsMatchTheReferenceAtAwkwardLengths) {
  for (Kind kind : kKinds)
    for (Index T : {0, 1, 2, 15, 16, 17, 53, 64})
      for (Gates gates : {Gates::usual, Gates::extreme})
        expect_forms_match({.kind = kind,
                            .T = T,
                            .initial = T % 2 == 1,
                            .tape = T % 3 > 0,
                            .gates = gates,
                            .chunk = kChunk,
                            .seed = std::uint64_t(T) + 1});
}

TEST(Scan, FormsMatchTheReferenceAtAwkwardWidths) {
  for (Kind kind : kKinds)
    for (Index width : {1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 300}) {
      const bool s6 = kind == Kind::s6;
      expect_forms_match({.kind = kind, .B = 1, .T = 9, .C = width, .N = s6 ? 4 : width, .initial = true, .chunk = 4});
      if (s6 && width < 40) expect_forms_match({.kind = kind, .T = 9, .C = 3, .N = width, .initial = true, .chunk = 4});
    }
}

TEST(Scan, FormsMatchTheReferenceOnPacksAndStrides) {
  for (Kind kind : kKinds)
    for (Layout layout : {Layout::dense, Layout::strided})
      for (bool initial : {false, true})
        expect_forms_match({.kind = kind,
                            .B = 1,
                            .T = 40,
                            .C = 18,
                            .N = 5,
                            .offsets = {0, 3, 3, 37, 40},
                            .initial = initial,
                            .tape = !initial,
                            .layout = layout,
                            .chunk = kChunk});
}

TEST(Scan, ChunkSizesAgree) {
  for (Kind kind : kKinds)
    for (Index chunk : {1, 7, 32, 0}) expect_matches<float>({.kind = kind, .T = 100, .chunk = chunk}, Form::chunk);
}

TEST(Scan, ThreadsDoNotChangeABit) {
  for (Kind kind : kKinds)
    for (Index width : {20, 300}) {
      const Draw draw{.kind = kind, .B = 1, .T = 200, .C = width, .N = kind == Kind::s6 ? 3 : width, .initial = true};
      Context one(1), two(2), seven(7);
      const Results want = run<float>(draw, Form::chunk, one);
      EXPECT_EQ(want, run<float>(draw, Form::chunk, two)) << label(draw);
      EXPECT_EQ(want, run<float>(draw, Form::chunk, seven)) << label(draw);
    }
}

TEST(Scan, AStreamMayKeepItsStateInPlace) {
  for (Kind kind : {Kind::real, Kind::complex}) {
    Plain<float> p({.kind = kind, .B = 1, .T = 37, .N = 21});
    Context context(2);
    const Results want = p.run(Form::chunk, context);
    std::vector<float> h(37 * 21), h_imag(37 * 21), state(21), imag(21);
    const View<float, 2> real_state = contiguous(state.data(), {1, 21}), imag_state = contiguous(imag.data(), {1, 21});
    Index t = 0;
    for (Index length : {1, 1, 20, 0, 1, 14}) {
      const auto piece = [&](auto view) { return view.present() ? slice(view, 1, t, length) : view; };
      ScanInputs<float> in = p.in;
      in.log_decay = piece(in.log_decay), in.x = piece(in.x), in.angle = piece(in.angle), in.x_imag = piece(in.x_imag);
      ScanOutputs<float> out{.h = piece(contiguous(h.data(), {1, 37, 21}))};
      in.initial.state = out.final_states.state = real_state;
      if (kind == Kind::complex) {
        in.initial.imag = out.final_states.imag = imag_state;
        out.h_imag = piece(contiguous(h_imag.data(), {1, 37, 21}));
      }
      scan(in, {}, Form::automatic, out, context);
      t += length;
    }
    EXPECT_EQ(std::vector<double>(h.begin(), h.end()), want.at("h"));
    EXPECT_EQ(std::vector<double>(state.begin(), state.end()), want.at("final_state"));
  }
}

TEST(Scan, AStreamOfS6MayKeepItsStateInPlace) {
  S6<float> p({.kind = Kind::s6, .B = 1, .T = 37, .C = 21, .N = 5});
  Context context(2);
  const Results want = p.run(Form::reference, context);
  std::vector<float> o(37 * 21), state(21 * 5);
  Index t = 0;
  for (Index length : {1, 1, 20, 0, 1, 14}) {
    const auto piece = [&](auto view) { return slice(view, 1, t, length); };
    ScanS6Inputs<float> in = p.in;
    in.x = piece(in.x), in.step = piece(in.step), in.b = piece(in.b), in.c = piece(in.c);
    const View<float, 3> place = contiguous(state.data(), {1, 21, 5});
    in.initial_state = place;
    scan_s6(in, {}, Form::automatic, {.o = piece(contiguous(o.data(), {1, 37, 21})), .final_state = place}, context);
    t += length;
  }
  EXPECT_LE(error_of({o.begin(), o.end()}, want.at("o")), 2e-6);
  EXPECT_LE(error_of({state.begin(), state.end()}, want.at("final_state")), 2e-6);
}

TEST(Scan, ADecayOfZeroForgetsExactly) {
  for (Kind kind : {Kind::real, Kind::complex}) {
    Plain<float> p({.kind = kind, .initial = true, .chunk = kChunk});
    laws_test::each(View<float, 3>{const_cast<float*>(p.in.log_decay.data), p.in.log_decay.shape, p.in.log_decay.stride},
                    [](float& x) { x = -std::numeric_limits<float>::infinity(); });
    Context context(1);
    Results r = p.run(Form::chunk, context), inputs;
    p.arrays.put(inputs, "x", View<float, 3>{const_cast<float*>(p.in.x.data), p.in.x.shape, p.in.x.stride});
    EXPECT_EQ(r.at("h"), inputs.at("x"));
    for (double g : r.at("grad_log_decay")) EXPECT_EQ(g, 0);
    for (double g : r.at("grad_initial_state")) EXPECT_EQ(g, 0);
    for (double g : r["grad_angle"]) EXPECT_EQ(g, 0);
  }
}

// One token without input from a state of one: what is left is e^{step·a} itself.
template <class T>
std::vector<T> decays_of(const std::vector<T>& exponents, Form form) {
  const std::size_t size = exponents.size();
  const Index n = Index(size);
  std::vector<T> ones(size, T(1)), zeros(size, T(0)), out(size), o(size);
  Context context(1);
  ScanS6Inputs<T> in{.x = contiguous(zeros.data(), {1, 1, n}),
                     .step = contiguous(exponents.data(), {1, 1, n}),
                     .a = {ones.data(), {n, 1}, {1, 1}},
                     .b = contiguous(ones.data(), {1, 1, 1}),
                     .c = contiguous(ones.data(), {1, 1, 1}),
                     .initial_state = {ones.data(), {1, n, 1}, {n, 1, 1}}};
  scan_s6<T>(in, {}, form, {.o = contiguous(o.data(), {1, 1, n}), .final_state = {out.data(), {1, n, 1}, {n, 1, 1}}}, context);
  return out;
}

template <class T>
void expect_exact_decays(T lowest) {
  std::vector<T> exponents;
  for (int i = 0; i <= 20000; ++i) exponents.push_back(lowest * T(i) / T(20000));
  for (Form form : {Form::step, Form::chunk}) {
    const std::vector<T> got = decays_of(exponents, form);
    EXPECT_EQ(got[0], T(1));
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = std::exp(double(exponents[i]));
      // An exponent is rounded once when it is turned into one of 2, which multiplies the decay by that much.
      const double limit = (2 + std::abs(double(exponents[i]))) * std::numeric_limits<T>::epsilon() * want;
      worst = std::max(worst, std::abs(double(got[i]) - want) / limit);
    }
    EXPECT_LE(worst, 1) << sizeof(T) << " bytes";
  }
}

TEST(Scan, DecaysOfS6AreExponentials) {
  expect_exact_decays<float>(-80);
  expect_exact_decays<double>(-600);
}

TEST(Scan, DecaysOfS6EndInZeroAndInfinity) {
  for (Form form : {Form::step, Form::chunk}) {
    EXPECT_EQ(decays_of<float>({-90, -1e4f, -1e30f, 0, 1, 89, 1e10f}, form),
              (std::vector<float>{0, 0, 0, 1, decays_of<float>({1}, form)[0], std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::infinity()}));
    EXPECT_EQ(decays_of<double>({-720, -1e300, 0}, form), (std::vector<double>{0, 0, 1}));
    EXPECT_TRUE(std::isnan(decays_of<float>({std::numeric_limits<float>::quiet_NaN(), -1}, form)[0]));
  }
}

// Every channel of decay 1 without angle is a running sum.
TEST(Scan, WithoutDecayItIsASum) {
  const Index T = 100, N = 10;
  const std::vector<double> zeros(T * N, 0.0);
  std::vector<double> x(T * N), h(T * N);
  for (Index i = 0; i < T * N; ++i) x[i] = double(i % 7) - 3;
  Context context(1);
  scan<double>({.log_decay = contiguous(zeros.data(), {1, T, N}), .x = contiguous<const double>(x.data(), {1, T, N})}, {},
               Form::chunk, {.h = contiguous(h.data(), {1, T, N})}, context);
  for (Index i = 0; i < N; ++i) {
    double sum = 0;
    for (Index t = 0; t < T; ++t) {
      sum += x[t * N + i];
      EXPECT_EQ(h[t * N + i], sum);
    }
  }
}

TEST(Scan, LargeOutputsAreTheSameWhereverTheyLie) {
  // 8 MiB, past the caches if rows are whole lines; the last channels are a part of a block of vectors.
  constexpr Index L = 1100, N = 976;
  const Plain<float> p({.kind = Kind::complex, .B = 1, .T = L, .N = N});
  Context context(2);
  const auto outputs_at = [&](Index shift) {
    Buffer<float> memory(6 * L * N + 16);
    Index next = shift;
    const auto tokens = [&] { return contiguous(memory.data() + std::exchange(next, next + L * N), {Index(1), L, N}); };
    const View<float, 3> h = tokens(), h_imag = tokens();
    scan(p.in, {}, Form::chunk, {.h = h, .h_imag = h_imag}, context);
    scan_vjp(p.in, {}, Form::chunk, {.h = p.in.x, .h_imag = p.in.x_imag},
             {.log_decay = tokens(), .x = tokens(), .angle = tokens(), .x_imag = tokens()}, context);
    return std::vector<float>(memory.data() + shift, memory.data() + next);
  };
  EXPECT_TRUE(outputs_at(0) == outputs_at(1));
}

TEST(Scan, ADecayThatDoesNotChangeMayHaveStrideZero) {
  Plain<float> p({.kind = Kind::complex, .initial = true, .chunk = kChunk});
  p.in.log_decay.stride = {0, 0, 1};
  p.in.angle.stride = {0, 0, 1};
  Context context(1);
  const Results want = p.run(Form::reference, context), got = p.run(Form::chunk, context);
  for (const auto& [name, values] : want) EXPECT_LE(error_of(got.at(name), values), 4e-6) << name;
}

TEST(Scan, SaysWhatWasExpected) {
  Context context(1);
  Plain<float> p({.initial = true});
  std::vector<float> memory(1000);
  const View<float, 3> h = contiguous(memory.data(), {2, 19, 3});
  const auto says = [&](auto change, Form form = Form::chunk) {
    ScanInputs<float> in = p.in;
    ScanOutputs<float> out{.h = h};
    ScanOptions options;
    change(in, options, out);
    return tests::error_of([&] { scan(in, options, form, out, context); });
  };
  using In = ScanInputs<float>&;
  using Opt = ScanOptions&;
  using Out = ScanOutputs<float>&;
  const auto nothing = [](In, Opt, Out) {};
  EXPECT_EQ(says([](In in, Opt, Out) { in.x = {}; }), "scan: expected log_decay and x, got none of at least one of them");
  EXPECT_EQ(says([](In in, Opt, Out) { in.x.shape[2] = 0; }), "scan: expected N > 0, got 0");
  EXPECT_EQ(says([](In in, Opt, Out) { in.log_decay.shape[1] = 4; }),
            "scan: expected log_decay of shape [2, 19, 3], got [2, 4, 3]");
  EXPECT_EQ(says([](In in, Opt, Out) { in.angle = slice(in.x, 2, 0, 1); }),
            "scan: expected angle of shape [2, 19, 3], got [2, 19, 1]");
  EXPECT_EQ(says([](In in, Opt, Out) { in.x_imag = slice(in.x, 0, 0, 1); }),
            "scan: expected x_imag of shape [2, 19, 3], got [1, 19, 3]");
  EXPECT_EQ(says([](In in, Opt, Out) { in.initial.state.shape[0] = 1; }),
            "scan: expected initial_state of shape [2, 3], got [1, 3]");
  EXPECT_EQ(says([](In, Opt o, Out) { o.chunk = -1; }), "scan: expected chunk >= 0, got -1");
  EXPECT_EQ(says(nothing, Form::parallel), "scan: expected form reference, step or chunk, got parallel");
  EXPECT_EQ(says([](In, Opt, Out out) { out.h = {}; }), "scan: expected an h to write, got none");
  EXPECT_EQ(says([](In, Opt, Out out) { out.h.shape[1] = 2; }), "scan: expected h of shape [2, 19, 3], got [2, 2, 3]");
  EXPECT_EQ(says([](In, Opt, Out out) { out.h_imag = out.h; }),
            "scan: expected an h_imag to write only with angle, x_imag or initial_imag");
  EXPECT_EQ(says([](In in, Opt, Out) { in.angle = in.x; }), "scan: expected an h_imag to write with complex numbers, got none");
  EXPECT_EQ(says([](In, Opt, Out out) {
              out.final_states.imag = contiguous(out.h.data, {2, 3});
            }),
            "scan: expected final_imag only with angle, x_imag or initial_imag");
  EXPECT_EQ(tests::error_of([&] { scan_vjp(p.in, {}, Form::chunk, {.h_imag = h}, {}, context); }),
            "scan: expected grad_h_imag only with angle, x_imag or initial_imag");
  EXPECT_EQ(tests::error_of([&] { scan_vjp(p.in, {}, Form::chunk, {.h = slice(h, 1, 0, 2)}, {}, context); }),
            "scan: expected grad_h of shape [2, 19, 3], got [2, 2, 3]");
  EXPECT_EQ(tests::error_of([&] { scan_vjp(p.in, {}, Form::chunk, {.h = h}, {.angle = h}, context); }),
            "scan: expected grad_angle only with angle, x_imag or initial_imag");
  EXPECT_EQ(tests::error_of([&] { scan_vjp(p.in, {}, Form::chunk, {.h = h}, {.x_imag = h}, context); }),
            "scan: expected grad_x_imag only with angle, x_imag or initial_imag");
}

TEST(Scan, SaysWhatWasExpectedOfS6) {
  Context context(1);
  S6<float> p({.kind = Kind::s6, .initial = true});
  std::vector<float> memory(1000);
  const View<float, 3> o = contiguous(memory.data(), {2, 19, 5});
  const auto says = [&](auto change, Form form = Form::chunk) {
    ScanS6Inputs<float> in = p.in;
    ScanS6Outputs<float> out{.o = o};
    change(in, out);
    return tests::error_of([&] { scan_s6(in, {}, form, out, context); });
  };
  using In = ScanS6Inputs<float>&;
  using Out = ScanS6Outputs<float>&;
  EXPECT_EQ(says([](In in, Out) { in.b = {}; }), "scan: expected x, step, a, b and c, got none of at least one of them");
  EXPECT_EQ(says([](In in, Out) { in.a.shape[1] = 0; }), "scan: expected C > 0 and N > 0, got 5 and 0");
  EXPECT_EQ(says([](In in, Out) { in.step.shape[2] = 1; }), "scan: expected step of shape [2, 19, 5], got [2, 19, 1]");
  EXPECT_EQ(says([](In in, Out) { in.a.shape[0] = 4; }), "scan: expected a of shape [5, 3], got [4, 3]");
  EXPECT_EQ(says([](In in, Out) { in.b.shape[2] = 2; }), "scan: expected b of shape [2, 19, 3], got [2, 19, 2]");
  EXPECT_EQ(says([](In in, Out) { in.c.shape[0] = 1; }), "scan: expected c of shape [2, 19, 3], got [1, 19, 3]");
  EXPECT_EQ(says([](In in, Out) { in.d.shape[0] = 4; }), "scan: expected d of shape [5], got [4]");
  EXPECT_EQ(says([](In in, Out) { in.initial_state.shape[0] = 1; }),
            "scan: expected initial_state of shape [2, 5, 3], got [1, 5, 3]");
  EXPECT_EQ(says([](In, Out out) { out.o = {}; }), "scan: expected an o to write, got none");
  EXPECT_EQ(says([](In, Out out) { out.o.shape[1] = 1; }), "scan: expected o of shape [2, 19, 5], got [2, 1, 5]");
  EXPECT_EQ(says([](In, Out) {}, Form::parallel), "scan: expected form reference, step or chunk, got parallel");
  EXPECT_EQ(tests::error_of([&] { scan_s6(p.in, {.chunk = -1}, Form::chunk, {.o = o}, context); }),
            "scan: expected chunk >= 0, got -1");
  EXPECT_EQ(tests::error_of([&] { scan_s6_vjp(p.in, {}, Form::chunk, {.o = slice(o, 1, 0, 2)}, {}, context); }),
            "scan: expected grad_o of shape [2, 19, 5], got [2, 2, 5]");
}

TEST(ScanLaw, SaysWhatWasExpected) {
  const Law& law = find_law("scan");
  Context context(1);
  const auto says = [&](std::vector<std::string> with, auto change) {
    Tensors inputs = random_inputs(law, {.with = std::move(with)}, Type::f32, 1);
    change(inputs);
    return tests::error_of([&] { (void)apply(law, {inputs, {}, Form::chunk, context}); });
  };
  const std::vector<std::string> plain{"log_decay"}, s6{"x:B T C", "step", "a", "b", "c"};
  const auto tensor = [](std::vector<Index> shape) { return Tensor(Type::f32, std::move(shape)); };
  EXPECT_EQ(says(plain, [](Tensors& in) { in.erase("log_decay"); }), "scan: expected an input log_decay, found none");
  EXPECT_EQ(says(s6, [](Tensors& in) { in.erase("b"); }), "scan: expected an input b, found none");
  EXPECT_EQ(says(s6,
                 [&](Tensors& in) {
                   in["log_decay"] = tensor({2, 19, 3});
                 }),
            "scan: log_decay is not used with these options");
  EXPECT_EQ(says(plain,
                 [&](Tensors& in) {
                   in["grad_h_imag"] = tensor({2, 19, 3});
                 }),
            "scan: grad_h_imag is not used with these options");
  EXPECT_EQ(says(plain, [&](Tensors& in) { in["grad_o"] = tensor({2, 19, 3}); }), "scan: grad_o is not used with these options");
  EXPECT_EQ(says(plain,
                 [&](Tensors& in) {
                   in["initial_state"] = tensor({2, 4, 3});
                 }),
            "scan: expected initial_state of shape [n, N] = [2, 3], got [2, 4, 3]");
  EXPECT_EQ(says(s6,
                 [&](Tensors& in) {
                   in["initial_state"] = tensor({2, 3});
                 }),
            "scan: expected initial_state of shape [n, C, N] = [2, 4, 3], got [2, 3]");
  EXPECT_EQ(says(s6,
                 [&](Tensors& in) {
                   in["grad_final_state"] = tensor({2, 3});
                 }),
            "scan: expected grad_final_state of shape [n, C, N] = [2, 4, 3], got [2, 3]");
}

}  // namespace
}  // namespace isomer::scan_test
