// The examples in headers, compiled and run. tools/examples compares what stands between "from" and "end" with the header.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/io/atomic_file.h"
#include "isomer/io/safetensors.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/laws/attention/attention.h"
#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/laws/delta/delta.h"
#include "isomer/laws/random.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/laws/scan/scan.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/preset.h"
#include "isomer/mixers/whole_map.h"
#include "isomer/nn/schedule.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

constexpr Index B = 1, T = 5, H = 2, K = 4, V = 3;

using examples::Arrays, examples::InNewFolder;

TEST(Examples, Base) {
  const Index b = 0, t = 1, h = 1;
  std::vector<float> buffer(std::size_t(B * T * H * K));
  // from isomer/base/view.h
  View<float, 4> q = contiguous(buffer.data(), {B, T, H, K});
  q(b, t, h, 3) = 1.0f;
  // end
  EXPECT_EQ(buffer[std::size_t((t * H + h) * K + 3)], 1.0f);

  const std::uint64_t seed = 1, stream = 2;
  // from isomer/base/rng.h
  Rng rng(seed, stream);
  double x = rng.normal();
  // end
  EXPECT_EQ(x, Rng(seed, stream).normal());
}

TEST(Examples, Files) {
  const InNewFolder here;
  {
    const char data[] = "text";
    const std::size_t bytes = 4;
    // from isomer/io/atomic_file.h
    AtomicFile file("out.safetensors");
    file.write(data, bytes);
    file.commit();  // without it, and on any Error, nothing is left behind
    // end
  }
  EXPECT_EQ(std::filesystem::file_size("out.safetensors"), 4u);
  {
    Tensors out;
    out.emplace("x", Tensor(Type::f32, {2}));
    write_safetensors("in.safetensors", out);
    // from isomer/io/safetensors.h
    Tensors in = read_safetensors("in.safetensors");
    write_safetensors("out.safetensors", out);
    // end
    EXPECT_EQ(in.at("x").shape(), out.at("x").shape());
  }
}

TEST(Examples, Laws) {
  Arrays<float> make;
  const auto q = make({B, T, H, K}), k = make({B, T, H, K}), v = make({B, T, H, V}), o = make({B, T, H, V}, -1.0f);
  {
    // from isomer/laws/attention/attention.h
    Context context;
    attention<float>({.q = q, .k = k, .v = v}, {}, Form::automatic, {.o = o}, context);
    // end
    EXPECT_NEAR(o(0, T - 1, 1, 0), 0.5f, 1e-6);
  }
  {
    const auto f = make({B, T, H}, 0.0f);
    // from isomer/laws/scalar_decay/scalar_decay.h
    Context context;
    scalar_decay<float>({.q = q, .k = k, .v = v, .log_decay = f}, {}, Form::automatic, {.o = o}, context);
    // end
    EXPECT_NEAR(o(0, T - 1, 1, 0), 0.5f * T * 0.5f, 1e-5);
  }
  {
    const auto f = make({B, T, H, K}, 0.0f);
    // from isomer/laws/channel_decay/channel_decay.h
    Context context;
    channel_decay<float>({.q = q, .k = k, .v = v, .log_decay = f}, {}, Form::automatic, {.o = o}, context);
    // end
    EXPECT_NEAR(o(0, T - 1, 1, 0), 0.5f * T * 0.5f, 1e-5);
  }
  {
    const auto beta = make({B, T, H}, 1.0f), g = make({B, T, H}, 0.0f);
    // from isomer/laws/delta/delta.h
    Context context;
    delta<float>({.q = q, .k = k, .v = v, .beta = beta, .log_decay = g}, {.l2norm = true}, Form::automatic, {.o = o}, context);
    // end
    // Keys of length one, all the same: the value is written once. The queries have length one too.
    EXPECT_NEAR(o(0, T - 1, 1, 0), 0.25f, 1e-5);
  }
}

TEST(Examples, Scans) {
  constexpr Index N = 4, C = N;
  Arrays<float> make;
  const auto h = make({B, T, N}), x = make({B, T, N}), f = make({B, T, N}, 0.0f);
  const auto o = make({B, T, C}), step = make({B, T, C}), b = make({B, T, N}), c = make({B, T, N});
  const auto a = make({C, N}, 0.0f);
  // from isomer/laws/scan/scan.h
  Context context;
  scan<float>({.log_decay = f, .x = x}, {}, Form::automatic, {.h = h}, context);
  scan_s6<float>({.x = x, .step = step, .a = a, .b = b, .c = c}, {}, Form::automatic, {.o = o}, context);
  // end
  EXPECT_NEAR(h(0, T - 1, 0), 0.5f * T, 1e-6);
  EXPECT_NEAR(o(0, T - 1, 0), 0.125f * T * 0.5f * N, 1e-5);
}

TEST(Examples, Kernels) {
  constexpr Index M = 3, N = 2;
  Arrays<float> make;
  const auto x = make({M, K}), weight = make({N, K}), y = make({M, N}), dy = make({M, N}), dweight = make({K, N});
  const auto bias = make({N}, 2.0f);
  Context context;
  // from isomer/kernels/gemm/gemm.h
  matmul(x, transposed(weight), y, context);                    // y [M, N] = x [M, K] · weightᵀ, weight [N, K]
  matmul(x, transposed(weight), y, context, {.bias = bias});    // + bias [N] in every row, while the row is in the cache
  matmul(transposed(x), dy, dweight, context, {.beta = 1.0f});  // adds to dweight
  // end
  EXPECT_NEAR(y(0, 1), 0.25f * K + 2, 1e-6);
  EXPECT_NEAR(dweight(0, 0), 0.5f + 0.25f * M, 1e-6);
}

TEST(Examples, MixersAndTraining) {
  {
    // from isomer/mixers/preset.h
    const graph::Graph gla = build_mixer("gla", {.width = 256}, {{"heads", "8"}});
    // end
    EXPECT_EQ(gla.preset, "gla");
  }
  // from isomer/mixers/cost.h
  const Cost cost = cost_of(build_mixer("gla", {.width = 256}), 1024);
  // end
  EXPECT_GT(cost.parameters, 256 * 256);

  const double peak = 1e-3;
  const Index step = 99;
  // from isomer/nn/schedule.h
  const Schedule schedule{.kind = schedule_named("cosine"), .steps = 1000, .warmup = 100};
  const double lr = peak * factor(schedule, step);  // step counts from 0
  // end
  EXPECT_EQ(lr, peak);
}

TEST(Examples, WholeMap) {
  const Law& law = find_law("attention");
  const Settings settings{{"causal", "false"}};
  Tensors inputs = random_inputs(law, {.settings = settings, .sizes = {{"B", 1}, {"T", 5}}}, Type::f64, 1);
  inputs.erase("grad_o");
  Context context;
  const Tensors outputs = apply(law, {.inputs = inputs, .settings = settings, .form = Form::reference, .context = context});
  // from isomer/mixers/whole_map.h
  const std::vector<double> weights = whole_map(law, inputs, settings, outputs, 1);  // of head 1: [T, S]
  // end
  EXPECT_EQ(weights.size(), 25U);
}

}  // namespace
}  // namespace isomer
