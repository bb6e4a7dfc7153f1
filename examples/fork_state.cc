// Forks and saves a state: a prompt is read once, its state goes on in two ways, and comes back from a file to the last bit.
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "isomer/base/rng.h"
#include "isomer/io/safetensors.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"

namespace {
constexpr isomer::Index H = 2, K = 16, V = 16;

isomer::Tensor random_tokens(isomer::Index T, isomer::Index width, std::uint64_t seed) {
  isomer::Tensor x(isomer::Type::f32, {1, T, H, width});
  isomer::Rng rng(seed);
  for (isomer::Index i = 0; i < x.size(); ++i) x.data<float>()[i] = float(rng.normal());
  return x;
}

/// Reads T tokens from `state`, which moves on, and returns the outputs.
isomer::Tensor read(isomer::Index T, std::uint64_t seed, const isomer::Tensor& state, isomer::Context& context) {
  const isomer::Tensor q = random_tokens(T, K, seed), k = random_tokens(T, K, seed + 1), v = random_tokens(T, V, seed + 2);
  const float log_decay[H] = {-0.01f, -0.1f};
  isomer::View<const float, 3> decay = isomer::contiguous(log_decay, {1, 1, H});
  decay.shape[1] = T, decay.stride[1] = 0;  // the same for every token
  isomer::Tensor o(isomer::Type::f32, {1, T, H, V});
  const auto s = state.view<float, 4>();
  isomer::scalar_decay<float>({.q = q.view<const float, 4>(),
                               .k = k.view<const float, 4>(),
                               .v = v.view<const float, 4>(),
                               .log_decay = decay,
                               .initial = {.state = s}},
                              {}, isomer::Form::automatic, {.o = o.view<float, 4>(), .final_states = {.state = s}}, context);
  return o;
}

bool same(const isomer::Tensor& a, const isomer::Tensor& b) {
  return std::memcmp(a.bytes(), b.bytes(), std::size_t(a.size()) * sizeof(float)) == 0;
}
}  // namespace

int main() {
  isomer::Context context;
  isomer::Tensor state(isomer::Type::f32, {1, H, K, V});
  std::memset(state.bytes(), 0, std::size_t(state.size()) * sizeof(float));
  read(1000, 1, state, context);
  std::printf("the state after 1000 tokens: %td bytes\n", state.size() * isomer::Index(sizeof(float)));

  const std::string path = (std::filesystem::temp_directory_path() / "isomer-fork.safetensors").string();
  isomer::Tensors file;
  file["state"] = state.clone();
  isomer::write_safetensors(path, file);

  const isomer::Tensor fork = state.clone();
  const isomer::Tensor one = read(50, 10, state, context), other = read(50, 20, fork, context);
  std::printf("two ways to go on differ: %s\n", same(one, other) ? "no" : "yes");

  const isomer::Tensors loaded = isomer::read_safetensors(path);
  const isomer::Tensor again = read(50, 10, loaded.at("state"), context);
  std::printf("from the file, the first way comes out the same: %s\n", same(one, again) ? "yes" : "no");
  std::filesystem::remove(path);
}
