// Trains one parameter through channel_decay: the logarithm of a decay that all channels share. A teacher with decay 0.9 makes
// the targets; gradient descent on the mean squared error finds it again through the law's own gradient.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/laws/channel_decay/channel_decay.h"

namespace {
constexpr isomer::Index T = 64, H = 2, K = 8, V = 8;

std::vector<float> numbers(std::uint64_t seed, isomer::Index width) {
  isomer::Rng rng(seed);
  std::vector<float> x(std::size_t(T * H * width));
  for (float& e : x) e = float(rng.normal());
  return x;
}

class Model {
 public:
  /// o for a decay that all heads, tokens and channels share.
  std::vector<float> outputs(float log_decay) {
    std::fill(decay_.begin(), decay_.end(), log_decay);
    std::vector<float> o(std::size_t(T * H * V));
    isomer::channel_decay<float>(inputs(), {}, isomer::Form::automatic, {.o = view(o, V), .tape = &tape_}, context_);
    return o;
  }
  /// The gradient of the shared decay: the sum over everything that shares it.
  double gradient(std::vector<float>& grad_o) {
    std::vector<float> grad(decay_.size());
    isomer::channel_decay_vjp<float>(inputs(), {}, isomer::Form::automatic, {.o = view(grad_o, V), .tape = &tape_},
                                     {.log_decay = view(grad, K)}, context_);
    double sum = 0;
    for (float g : grad) sum += double(g);
    return sum;
  }

 private:
  static isomer::View<float, 4> view(std::vector<float>& x, isomer::Index width) {
    return isomer::contiguous(x.data(), {1, T, H, width});
  }
  isomer::ChannelDecayInputs<float> inputs() {
    return {.q = view(q_, K), .k = view(k_, K), .v = view(v_, V), .log_decay = view(decay_, K)};
  }

  isomer::Context context_;
  isomer::ChannelDecayTape<float> tape_;
  std::vector<float> q_ = numbers(1, K), k_ = numbers(2, K), v_ = numbers(3, V), decay_ = numbers(4, K);
};
}  // namespace

int main() {
  Model model;
  const std::vector<float> target = model.outputs(std::log(0.9f));
  double log_decay = std::log(0.5);
  for (int step = 0; step <= 60; ++step) {
    std::vector<float> o = model.outputs(float(log_decay));
    double loss = 0;
    for (std::size_t i = 0; i < o.size(); ++i) {
      const double difference = double(o[i] - target[i]);
      loss += difference * difference / double(o.size());
      o[i] = float(2 * difference / double(o.size()));
    }
    if (step % 20 == 0) std::printf("step %d: decay %.2f, loss %.2f\n", step, std::exp(log_decay), loss);
    log_decay -= 0.005 * model.gradient(o);
  }
}
