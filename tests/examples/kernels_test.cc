// As examples_test.cc, for kernels; those of one instruction set are compiled as the scalar ones.
#define ISOMER_TARGET_ISA 0
// from isomer/simd/target.h
#include "isomer/simd/target.h"
// The vectors first: conv_impl.h is written over them.
#include "isomer/kernels/conv/conv_impl.h"
template struct isomer::ConvKernels<float, isomer::kTarget>;
// end
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "isomer/kernels/conv/conv.h"
#include "isomer/kernels/dropout/dropout.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/cumulative.h"
#include "isomer/kernels/elementwise/features.h"
#include "isomer/kernels/elementwise/fused.h"
#include "isomer/kernels/elementwise/gated.h"
#include "isomer/kernels/elementwise/pass.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/embedding/embedding.h"
#include "isomer/kernels/local/local.h"
#include "isomer/kernels/loss/loss.h"
#include "isomer/kernels/norm/norm.h"
#include "isomer/kernels/optimiser/optimiser.h"
#include "isomer/kernels/psi/psi.h"
#include "isomer/kernels/rotary/rotary.h"
#include "isomer/kernels/rows.h"
#include "isomer/laws/with_law_isa.h"
#include "isomer/simd/map.h"
#include "isomer/simd/math.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

constexpr Index B = 2, T = 3, H = 2, D = 4;
constexpr float kSilu = 0.5f * 0.62245933f;  // of 0.5: sigmoid(0.5) is the second factor

class KernelExamples : public ::testing::Test {
 protected:
  examples::Arrays<float> make;
  Context context{2};
};
class ElementwiseExamples : public KernelExamples {
 protected:
  View<float, 4> x = make({B, T, H, D}), y = make({B, T, H, D}, 0.0f);
  View<float, 4> dx = make({B, T, H, D}, 0.0f), dy = make({B, T, H, D}, 1.0f);
};

TEST_F(KernelExamples, Convolutions) {
  constexpr Index C = 4;
  const auto x = make({B, T, C}), y = make({B, T, C}), state = make({B, 2, C}, 0.0f), next = make({B, 2, C}, 0.0f);
  const auto w = make({C, 3});
  // from isomer/kernels/conv/conv.h
  conv<float>({.x = x, .weight = w, .state = state}, {}, {.y = y, .state = next}, context);
  // end
  EXPECT_EQ(y(0, 0, 0), 0.25f);
  EXPECT_EQ(y(0, 2, 0), 0.75f);
  EXPECT_EQ(next(1, 1, 3), 0.5f);
}

TEST_F(ElementwiseExamples, Dropout) {
  const std::uint64_t seed = 1, step = 2;
  // from isomer/kernels/dropout/dropout.h
  dropout<float>({.rate = 0.1, .seed = seed, .stream = step}, x, y, Accumulate::set, context);
  // end
  for (Index t = 0; t < T; ++t) EXPECT_TRUE(y(0, t, 0, 0) == 0 || std::abs(y(0, t, 0, 0) - 0.5f / 0.9f) < 1e-6f);
}

TEST_F(ElementwiseExamples, Binary) {
  const auto weight = make({1, 1, H, D}, 3.0f), dweight = make({1, 1, H, D}, 1.0f);
  // from isomer/kernels/elementwise/binary.h
  binary<float>(Binary::multiply, x, weight, y, context);  // x [B, T, H, D], weight [1, 1, H, D]
  binary_vjp<float>(Binary::multiply, x, weight, dy, {.da = dx, .db = dweight, .accumulate_b = Accumulate::add}, context);
  // end
  EXPECT_EQ(y(1, 2, 1, 3), 1.5f);
  EXPECT_EQ(dx(1, 2, 1, 3), 3.0f);
  EXPECT_EQ(dweight(0, 0, 1, 3), 1 + 0.5f * B * T);
}

TEST_F(ElementwiseExamples, Cumulative) {
  examples::Arrays<double> wide;
  const auto before = wide({B, H, D}, 1.0), after = wide({B, H, D}, 0.0);
  // from isomer/kernels/elementwise/cumulative.h
  cumulative_sum<float>(x, {.initial = before, .final = after}, y, context);
  // end
  EXPECT_EQ(y(1, 1, 0, 0), 2.0f);
  EXPECT_EQ(after(1, 0, 0), 2.5);
}

TEST_F(ElementwiseExamples, Features) {
  const auto features = make({B, T, H, taylor_size(D)});
  // from isomer/kernels/elementwise/features.h
  softmax<float>(x, y, context);                            // y = e^x / Σ e^x over D; y may be x
  softmax_vjp<float>(y, dy, dx, Accumulate::set, context);  // from y; dx may be dy
  taylor_features<float>(x, features, context);             // x [B, T, H, d], features [B, T, H, taylor_size(d)]
  // end
  EXPECT_NEAR(y(1, 2, 1, 3), 0.25f, 1e-6);
  EXPECT_NEAR(dx(1, 2, 1, 3), 0, 1e-6);
  EXPECT_EQ(features(1, 2, 1, 0), 1.0f);
}

TEST_F(ElementwiseExamples, Unary) {
  {
    // from isomer/kernels/elementwise/unary.h
    unary<float>(Unary::silu, {}, x, y, context);
    unary<float>(Unary::softcap, {.a = 30}, x, y, context);
    unary_vjp<float>(Unary::silu, {}, x, dy, dx, Accumulate::add, context);  // dx += f'(x) · dy
    // end
    EXPECT_NEAR(y(0, 0, 0, 0), 30 * std::tanh(0.5 / 30), 1e-6);
    EXPECT_NEAR(dx(0, 0, 0, 0), 0.62245933 * (1 + 0.5 * (1 - 0.62245933)), 1e-6);
  }
  const auto g = x, dg = make({B, T, H, D});
  // from isomer/kernels/elementwise/gated.h
  gated<float>(Unary::silu, g, x, y, context);
  gated_vjp<float>(Unary::silu, g, x, dy, {.dg = dg, .dx = dx}, context);
  // end
  EXPECT_NEAR(y(0, 0, 0, 0), kSilu * 0.5f, 1e-6);
  EXPECT_NEAR(dx(0, 0, 0, 0), kSilu, 1e-6);
}

TEST_F(ElementwiseExamples, Fused) {
  const auto g = make({B, T, H, D}, 0.0f), dg = make({B, T, H, D}, 0.0f);
  const std::array outputs{3};
  // from isomer/kernels/elementwise/fused.h
  // Values: 0 is g, 1 is x; 2 = exp(g); 3 = 2 · x.
  const std::array steps{FusedStep{.a = 0, .f = Unary::exp}, FusedStep{.a = 2, .b = 1, .combine = Binary::multiply}};
  const Fused plan{.inputs = 2, .steps = steps, .outputs = outputs};  // outputs: 3
  const std::array<View<const float, 4>, 2> inputs{g, x};
  const std::array<View<float, 4>, 1> ys{y};
  fused<float>(plan, inputs, ys, context);
  const std::array<View<const float, 4>, 1> dys{dy};
  const std::array<FusedTarget<float>, 2> targets{{{dg}, {dx}}};
  fused_vjp<float>(plan, inputs, dys, targets, context);  // computes what it needs of 2 again
  // end
  EXPECT_EQ(y(1, 2, 1, 3), 0.5f);  // exp(0) · x
  EXPECT_EQ(dg(1, 2, 1, 3), 0.5f);
  EXPECT_EQ(dx(1, 2, 1, 3), 1.0f);
}

TEST_F(ElementwiseExamples, Sums) {
  const auto sums = make({1, 1, H, D}), a = x, db = make({B, T, H, 1}, 1.0f);
  // from isomer/kernels/elementwise/sum.h
  copy<float>(x, y, context);                                           // y = x, whatever the strides
  add_to<float>(x, y, context);                                         // y += x
  sum_to<float>({.x = x}, sums, Accumulate::set, context);              // sums [1, 1, H, D] = Σ x over B and T
  sum_to<float>({.x = dy, .weight = a}, db, Accumulate::add, context);  // db [B, T, H, 1] += Σ dy · a over D
  // end
  EXPECT_EQ(y(1, 2, 1, 3), 1.0f);
  EXPECT_EQ(sums(0, 0, 1, 3), 0.5f * B * T);
  EXPECT_EQ(db(1, 2, 1, 0), 1 + 0.5f * D);
}

TEST_F(KernelExamples, Embeddings) {
  const std::vector<std::int64_t> numbers{0, 1, 1, 1, 1, 1};
  const auto ids = contiguous(numbers.data(), {B, T});
  const auto rows = make({2, D}), dtable = make({2, D}, 0.0f);
  const auto y = make({B, T, 1, D}), dy = make({B, T, 1, D}, 1.0f);
  rows(1, 2) = 7;
  const View<const float, 2> table = rows;
  // from isomer/kernels/embedding/embedding.h
  embedding<float>(ids, table, y, context);                         // y[b, t, 0] = table[ids[b, t]]
  embedding_vjp<float>(ids, dy, dtable, Accumulate::add, context);  // dtable[ids[b, t]] += dy[b, t, 0]
  // end
  EXPECT_EQ(y(1, 0, 0, 2), 7.0f);
  EXPECT_EQ(dtable(1, 0), 5.0f);
}

TEST_F(ElementwiseExamples, LocalSums) {
  const auto v = x, r = make({B, T, H, 3 * D}, 1.0f);
  const auto before = make({B, 2, H * D}, 0.0f), after = make({B, 2, H * D}, 0.0f);
  // from isomer/kernels/local/local.h
  local_sum<float>({.v = v, .weight = r, .state = before}, {.width = 3}, {.y = y, .state = after}, context);
  // end
  EXPECT_EQ(y(0, 0, 0, 0), 0.5f);
  EXPECT_EQ(y(0, 2, 0, 0), 1.5f);
  EXPECT_EQ(after(0, 1, 0), 0.5f);
}

TEST_F(KernelExamples, Losses) {
  const std::vector<std::int64_t> numbers{1, -1, 0};
  const auto labels = contiguous(numbers.data(), {3});
  const auto x = make({3, D}), dx = make({3, D}), w = make({2, D}), dw = make({2, D}, 0.0f);
  w(1, 0) = 1;
  // from isomer/kernels/loss/loss.h
  const ProjectedLoss<float> in{.x = x, .weight = w, .labels = labels};
  const LossResult r = projected_cross_entropy<float>(in, {.dx = dx, .dweight = dw}, context);
  // r.mean, r.count (labels that count), r.correct (of them, those whose logit is the largest)
  // end
  EXPECT_EQ(r.count, 2);
  EXPECT_EQ(r.correct, 1);
  // The logits of every row are 1 and 1.25.
  EXPECT_NEAR(r.mean, std::log(1 + std::exp(0.25)) - 0.125, 1e-6);
}

TEST_F(ElementwiseExamples, Norms) {
  const auto w = make({H, D}, 2.0f);
  // from isomer/kernels/norm/norm.h
  norm<float>(x, {.weight = w}, {.kind = Norm::rms}, y, context);  // x, y [B, T, H, D]: every head by itself
  // end
  EXPECT_NEAR(y(1, 2, 1, 3), 2.0f, 1e-4);
}

TEST_F(KernelExamples, Optimisers) {
  constexpr Index n = 3;
  const Isa isa = context.isa();
  float w[n] = {1, 1, 1}, g[n] = {2, -2, 2}, m[n] = {}, v[n] = {};
  // from isomer/kernels/optimiser/optimiser.h
  adamw<float>({.values = w, .gradient = g, .first = m, .second = v, .size = n},
               {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .correction1 = 0.1, .correction2 = 0.05}, isa);
  // end
  EXPECT_NEAR(w[0], 1 - 1e-3, 1e-6);
  EXPECT_NEAR(w[1], 1 + 1e-3, 1e-6);
}

TEST_F(KernelExamples, Psi) {
  constexpr Index L = 2, J = 3;
  const PsiParameters<float> parameters{.w1 = make({L, J}), .b1 = make({L, J}), .w2 = make({L, J}), .b2 = make({1, L})};
  const PsiOptions options;
  Workspace& scratch = context.workspace();
  const auto u = make({B, T, H, D}), y = make({B, T, H, D * L});
  // from isomer/kernels/psi/psi.h
  const PsiTable<float> table = psi_table<float>(parameters, scratch);
  psi<float>(table, options, u, y, context);  // u [B, T, H, m], y [B, T, H, m·L]: ψ_l of u_i at i·L + l
  // end
  EXPECT_NEAR(y(1, 2, 1, 7), 3 * 0.5 * (0.25 + 0.5) + 0.5, 1e-5);
}

TEST_F(ElementwiseExamples, Rotary) {
  const std::int64_t position = 5;
  const auto q = x, angle = make({B, T, 1, D / 2}, 0.0f);
  const float before = y(0, 0, 0, 0);
  // from isomer/kernels/rotary/rotary.h
  rotary<float>(q, {.base = 10000, .offset = position}, y, context);  // θ = (offset + t) · base^(−2n/D)
  rotary<float>(q, angle, y, context);                                // θ = angle [B, T, H or 1, D/2]
  // end
  EXPECT_NE(y(0, 0, 0, 0), before);
  EXPECT_EQ(y(0, 0, 0, 0), q(0, 0, 0, 0));
}

template <class N, Isa I>
void kernel(const N* in, N* out, Index n) {
  for (Index i = 0; i < n; ++i) out[i] = 2 * in[i];
}

template <class T>
void double_rows(View<const T, 4> x, View<T, 4> y, Context& context) {
  // from isomer/kernels/rows.h
  each_row_block<T>({x}, {y}, context, [&]<Isa I>(auto in, Rows<T> out, RowRange range, Workspace&) {
    for (Index r = range.begin; r < range.end; ++r) kernel<T, I>(in[0].row(r), out.row(r), D);  // dense
  });
  // end
}

template <class T>
void double_cells(View<const T, 4> x, View<T, 4> y, Context& context) {
  const auto twice = [](Extent extent, Cells<const T> in, Cells<T> out) {
    for (Index r = 0; r < extent.rows; ++r) kernel<T, Isa::scalar>(in.data + r * in.row, out.data + r * out.row, extent.columns);
  };
  // from isomer/kernels/elementwise/pass.h
  const Pass pass(y.shape, {strides_in(x, y.shape), y.stride});
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    const Cells<const T> in = read_cells(pass, patch, 0, x.data, scratch);
    const Cells<T> out = write_cells(pass, patch, 1, y.data, Accumulate::set, scratch);
    twice(patch.extent, in, out);  // rows × columns
    store_cells(pass, patch, 1, out, y.data);
  });
  // end
}

template <class N, Isa I>
struct LawKernels {
  static void step(const N* in, N* out, Index n) { kernel<N, I>(in, out, n); }
};

template <class T>
void double_all(const T* x, T* y, Index n, Context& context) {
  // from isomer/laws/with_law_isa.h
  with_law_isa<T>(context.isa(), [&]<Isa I>() { LawKernels<T, I>::step(x, y, n); });
  // end
}

TEST_F(ElementwiseExamples, Passes) {
  double_rows<float>(x, y, context);
  EXPECT_EQ(y(1, 2, 1, 3), 1.0f);
  double_cells<float>(dy, y, context);
  EXPECT_EQ(y(1, 2, 1, 3), 2.0f);
  const double in[] = {1, 2};
  double out[] = {0, 0};
  double_all(in, out, 2, context);
  EXPECT_EQ(out[1], 4);
}

TEST_F(KernelExamples, Functions) {
  using simd::map, simd::Function;
  constexpr Index n = 3;
  const std::vector<float> x(n, 0.5f);
  std::vector<float> y(n);
  // from isomer/simd/map.h
  map(Function::exp, x.data(), y.data(), n, context.isa());
  // end
  EXPECT_NEAR(y[2], std::exp(0.5), 1e-6);

  using V = simd::Vec<float, Isa::scalar>;
  const V s = V::set(0.5f), row_max = V::set(1.0f);
  // from isomer/simd/math.h
  const V p = exp(s - row_max);  // V = Vec<float, I>
  // end
  float first[V::lanes];
  p.store(first, V::lanes);
  EXPECT_NEAR(first[0], std::exp(-0.5), 1e-6);
}

}  // namespace
}  // namespace isomer
