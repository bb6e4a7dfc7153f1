// A training step takes memory from the heap once: the steps after it find all they need.
#include <gtest/gtest.h>

#include "isomer/autograd/conv.h"
#include "isomer/autograd/dropout.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/embedding.h"
#include "isomer/autograd/laws.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/loss.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/recompute.h"
#include "isomer/autograd/rotary.h"
#include "isomer/autograd/testing.h"
#include "isomer/autograd/views.h"
#include "tests/heap.h"

namespace isomer {
namespace {
using namespace ops;

constexpr Index kB = 3, kT = 40, kD = 16, kH = 2;
using F = float;

/// Memory of parameters and where their gradients go, made once.
struct Model {
  std::vector<F> table, projection, mix, conv_weight;
  Model() : table(11 * kD), projection(5 * kD * kD), mix(kD * kD), conv_weight(kD * 3) {
    Rng rng(1);
    for (auto* p : {&table, &projection, &mix, &conv_weight})
      for (F& w : *p) w = F(0.2 * rng.normal());
  }
};

F step(Tape<F>& tape, Model& model, const std::function<Var<F>(Tape<F>&, Var<F>, Var<F>, Var<F>)>& law) {
  std::array<std::int64_t, kB * kT> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int64_t(i * 7 % 11);
  const auto tokens = contiguous<const std::int64_t>(ids.data(), {kB, kT});
  const Var<F> table = tape.input(contiguous(model.table.data(), {1, 1, 11, kD}), true);
  const Var<F> projection = tape.input(contiguous(model.projection.data(), {1, 1, 5 * kD, kD}), true);
  const Var<F> mix = tape.input(contiguous(model.mix.data(), {1, 1, kD, kD}), true);
  const Var<F> taps = tape.input(contiguous(model.conv_weight.data(), {1, 1, kD, 3}), true);
  const Var<F> x = dropout(tape, embedding(tape, tokens, table), {.rate = 0.1, .seed = 1});
  const auto* f = &law;
  const Var<F> y = recompute<F>(tape, {x, projection, mix, taps}, [f](Tape<F>& t, auto in) {
    std::array<Var<F>, 5> p;
    split<F>(t, linear(t, norm(t, conv<F>(t, {in[0], in[3]}), {}), in[1]), std::array<Index, 5>{kD, kD, kD, kD, kD}, p);
    const Var<F> q = rotary(t, heads(p[0], kH), {.base = 10000}), k = rotary(t, heads(p[1], kH), {.base = 10000});
    const Var<F> o = heads((*f)(t, q, k, heads(p[2], kH)), 1);
    return add(t, in[0], linear(t, gated(t, Unary::silu, p[3], multiply(t, o, p[4])), in[2]));
  });
  const Var<F> loss = linear_cross_entropy<F>(tape, {.x = y, .weight = table, .labels = tokens});
  const F value = loss.value(0, 0, 0, 0);
  tape.backward(loss);
  tape.clear();
  return value;
}

/// By new, and by buffers.

TEST(Allocation, EndsWithTheFirstSteps) {
  const std::vector<std::pair<const char*, std::function<Var<F>(Tape<F>&, Var<F>, Var<F>, Var<F>)>>> laws{
      {"attention",
       [](Tape<F>& t, Var<F> q, Var<F> k, Var<F> v) {
         return attention<F>(t, {q, k, v});
       }},
      {"scalar_decay",
       [](Tape<F>& t, Var<F> q, Var<F> k, Var<F> v) {
         return scalar_decay<F>(t, {q, k, v});
       }},
      {"channel_decay",
       [](Tape<F>& t, Var<F> q, Var<F> k, Var<F> v) {
         return channel_decay<F>(t, {q, k, v, unary(t, Unary::log_sigmoid, k)});
       }},
      {"delta",
       [](Tape<F>& t, Var<F> q, Var<F> k, Var<F> v) {
         return delta<F>(t, {.q = q, .k = k, .v = v, .beta = unary(t, Unary::sigmoid, slice(q, 0, 1))}, {.l2norm = true});
       }},
      {"scan",
       [](Tape<F>& t, Var<F> q, Var<F>, Var<F> v) {
         return scan<F>(t, {unary(t, Unary::log_sigmoid, heads(q, 1)), heads(v, 1)});
       }},
  };
  Model model;
  for (const auto& [name, law] : laws) {
    // One thread: when another first takes part, and so takes its scratch, is chance.
    Context context(1);
    Tape<F> tape(context);
    const F first = step(tape, model, law);
    // The second finds in one block of scratch what the first took in several.
    EXPECT_EQ(step(tape, model, law), first);
    const long before = tests::heap_allocations();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(step(tape, model, law), first);
    EXPECT_EQ(tests::heap_allocations() - before, 0) << name;
  }
}

}  // namespace
}  // namespace isomer
