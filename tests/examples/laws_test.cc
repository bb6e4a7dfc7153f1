// As examples_test.cc, for what is written once for all laws, for mixers and for ops.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <span>
#include <string>
#include <vector>

#include "isomer/autograd/fill.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/testing.h"
#include "isomer/kernels/rotary/rotary.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/option_table.h"
#include "isomer/laws/random.h"
#include "isomer/mixers/builder.h"
#include "isomer/mixers/dsf_state.h"

namespace isomer {
namespace {

Tensors inputs_of(const Law& law, const Settings& settings, Type type, std::vector<std::string> with = {}) {
  Tensors all =
      random_inputs(law, {.settings = settings, .with = std::move(with), .sizes = {{"B", 1}, {"T", 5}, {"H", 2}}}, type, 1);
  for (const TensorSpec& spec : law.outputs()) all.erase("grad_" + std::string(spec.name));
  return all;
}

TEST(Examples, NamedLaws) {
  Context context(1);
  const Tensors in = inputs_of(find_law("scalar_decay"), {{"normaliser", "sum"}}, Type::f32);
  // from isomer/laws/law.h
  const Law& law = find_law("scalar_decay");
  Tensors out = apply(law, {.inputs = in, .settings = {{"normaliser", "sum"}}, .form = Form::chunk, .context = context});
  // end
  const View<const float, 4> want = law_view(out.at("o"));
  EXPECT_TRUE(std::isfinite(want(0, 4, 1, 0)));
}

TEST(Examples, BoundLaws) {
  Context context(1);
  const Law& law = find_law("scalar_decay");
  const Tensors named = inputs_of(law, {{"normaliser", "sum"}}, Type::f32);
  Tensor o(Type::f32, named.at("v").shape());
  LawViews in, out;
  for (const auto& [name, tensor] : named) in[std::size_t(law.input(name))] = law_view(tensor);
  out[std::size_t(law.output("o"))] = law_view(o);
  // from isomer/laws/law.h
  const auto bound = law.bind({{"normaliser", "sum"}});  // options are read once; then no call reads text
  bound->forward(in, out, {.form = Form::chunk, .context = context});
  // end
  const Tensors same = apply(law, {.inputs = named, .settings = bound->settings(), .form = Form::chunk, .context = context});
  const View<const float, 4> got = law_view(o), want = law_view(same.at("o"));
  EXPECT_EQ(got(0, 4, 1, 0), want(0, 4, 1, 0));
}

TEST(Examples, OptionTables) {
  const Settings settings{{"scale", "0.1"}};
  // from isomer/laws/option_table.h
  const OptionTable<DeltaOptions> kOptions{{option<&DeltaOptions::scale>("scale", "factor of the outputs", "K^-1/2"),
                                            option<&DeltaOptions::l2norm>("l2norm", "q and k of length one")}};
  const DeltaOptions options = kOptions.read(settings);
  const Settings text = kOptions.write(options);  // defaults are left out; every bit comes back
  // end
  EXPECT_EQ(options.scale, 0.1);
  EXPECT_EQ(text, settings);
}

TEST(Examples, Builders) {
  Builder m("example", {.width = 16}, {});
  // from isomer/mixers/builder.h
  const auto [H, K, V] = m.head_sizes({.heads = 4, .key_total = m.width() / 2});
  const Value q = m.heads(m.linear("q", m.x(), H * K), H);
  const Value k = m.heads(m.linear("k", m.x(), H * K), H), v = m.heads(m.linear("v", m.x(), H * V), H);
  const Value a = m.map(Unary::log_sigmoid, m.heads(m.linear("a", m.x(), H * K), H));
  m.output(m.linear("o", m.flat(m.channel_decay({.q = q, .k = k, .v = v, .log_decay = a})), m.width()));
  // end
  EXPECT_EQ(K, 2);
  EXPECT_EQ(V, 4);
  EXPECT_FALSE(m.finish().nodes.empty());
}

TEST(Examples, Systems) {
  const Settings settings{{"l2norm", "true"}};
  const Law& law = find_law("delta");
  const Tensors inputs = inputs_of(law, settings, Type::f64, {"beta"});
  // from isomer/mixers/dsf.h
  const Dsf system = realise(find_law("delta"), inputs, {{"l2norm", "true"}}, {.sequence = 0, .head = 1});
  const Signal y = run(system, written(find_law("delta"), inputs, {.sequence = 0, .head = 1}));
  const DsfMap map = materialise(system);  // the effective attention matrix
  // end
  Context context(1);
  const DsfPlace place{.sequence = 0, .head = 1};
  const Signal want = read(law, inputs, apply(law, {.inputs = inputs, .settings = settings, .context = context}), place);
  EXPECT_NEAR(std::abs(y(4, 0) - want(4, 0)), 0, 1e-12);
  EXPECT_EQ(map.T, 5);

  const Index t = 3;
  // from isomer/mixers/dsf_state.h
  const Signal u = written(law, inputs, place);
  const StateCurve curve = state_curve(system, u);     // of every token
  const StateMoment now = state_moment(system, u, t);  // h_t = now.kept + now.written
  // end
  double squares = 0;
  for (std::size_t i = 0; i < now.kept.size(); ++i) squares += std::norm(now.kept[i] + now.written[i]);
  EXPECT_NEAR(std::sqrt(squares), curve.norm[std::size_t(t)], 1e-12);
}

/// An op as ops are written.
template <class T>
Var<T> turned(Tape<T>& tape, Var<T> x, Var<T> angle) {
  const Var<T> y = tape.make(x.shape(), {x, angle});
  const Broadcast<T> angles{angle, {x.dim(0), x.dim(1), angle.dim(2), angle.dim(3)}};
  rotary<T>(x.value, angles.value(), y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    // from isomer/autograd/fill.h
    GradientWriter<T> write(back);
    const RotaryGradients<T> grad{.dx = write(x), .dangle = write(angles)};  // angles: a Broadcast
    rotary_vjp<T>(x.value, back.arrived(y), angles.value(), grad, back.context());
    write.finish();  // adds what could not be written in place
    // end
  });
  return y;
}

TEST(Examples, Gradients) {
  using namespace isomer::testing;
  expect_gradients({random_values({2, 5, 2, 4}, 1), random_values({1, 5, 1, 2}, 2)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) { return turned(tape, in[0], in[1]); });
  // from isomer/autograd/testing.h
  expect_gradients({random_values({1, 5, 1, 3}, 1), random_values({1, 1, 4, 3}, 2)},
                   [](Tape<double>& tape, std::span<const Var<double>> in) { return ops::linear(tape, in[0], in[1]); });
  // end
}

}  // namespace
}  // namespace isomer
