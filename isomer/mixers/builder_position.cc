// Positions of queries and keys: rotary embedding with fixed angles, or with angles that the input decides (Selective RoPE,
// Movahedi et al. 2025, arXiv 2511.17388).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "isomer/base/error.h"
#include "isomer/mixers/builder.h"

namespace isomer {

const std::string& Builder::positions(std::initializer_list<std::string_view> choices) {
  const auto offered = [&](std::string_view name) { return std::find(choices.begin(), choices.end(), name) != choices.end(); };
  position_ = choice("position", choices, "how tokens know their place");
  if (offered("learned")) {
    positions_ = size("position_length", 2048, "learned: how many positions have a vector");
    only_with(position_ == "learned", "position=learned", {"position_length"});
  }
  if (offered("rope")) {
    rope_.base = number("rope_base", 10000, "rope: angles are position * rope_base^(-2n/key)");
    require(rope_.base > 0, "rope_base", "expected a positive number, got ", rope_.base);
    only_with(position_ == "rope", "position=rope", {"rope_base"});
  }
  if (!offered("selective-rope")) return position_;
  phase_.convolution = choice("phase_filter", {"conv", "difference"},
                              "selective-rope: a convolution over 4 tokens, or the difference to the token before") == "conv";
  phase_.silu = flag("phase_silu", phase_.convolution, "selective-rope: SiLU after the convolution");
  phase_.gate = flag("phase_gate", true, "selective-rope: a sigmoid gate of each head on the angles");
  phase_.bias = flag("phase_bias", false, "selective-rope: a learned constant angle for each step");
  phase_.temperature = choice("phase_temperature", {"rope", "rfa", "equal"}, "selective-rope: fixed factors of the angles");
  phase_.base = number("phase_base", 500000, "selective-rope: base of the temperatures rope");
  phase_.maximum = number("phase_max", phase_.temperature == "rfa" ? 0.25 : 1, "selective-rope: the largest temperature");
  phase_.rank = size("phase_rank", 0, "selective-rope: rank of the projection to angles, 0 for a full one of each head", 0);
  require(phase_.base >= 1, "phase_base", "expected a number >= 1, got ", phase_.base);
  only_with(
      position_ == "selective-rope", "position=selective-rope",
      {"phase_filter", "phase_silu", "phase_gate", "phase_bias", "phase_temperature", "phase_base", "phase_max", "phase_rank"});
  only_with(phase_.convolution, "phase_filter=conv", {"phase_silu"});
  only_with(phase_.temperature == "rope", "phase_temperature=rope", {"phase_base"});
  return position_;
}

void Builder::rope_of_models(Index key) {
  rope_size_ = size("rope_size", key, "rope: so many channels of a head are rotated, the first", 2);
  require(rope_size_ == key || (rope_size_ % 2 == 0 && rope_size_ < key), "rope_size", "expected an even number up to ", key,
          ", got ", rope_size_);
  RotaryScaling& scaling = rope_.scaling;
  scaling.factor = number("rope_factor", 1, "rope: angles are divided by it");
  scaling.length = number("rope_length", 0, "rope: not 0: only those of waves of about this length and longer (Llama 3.1)");
  scaling.low = number("rope_low", scaling.low, "rope: waves longer than rope_length / rope_low have the whole factor");
  scaling.high = number("rope_high", scaling.high, "rope: waves shorter than rope_length / rope_high have none");
  require(scaling.factor > 0, "rope_factor", "expected a positive number, got ", scaling.factor);
  require(scaling.length >= 0, "rope_length", "expected a number >= 0, got ", scaling.length);
  require(scaling.low < scaling.high, "rope_low", "expected a number below rope_high=", scaling.high, ", got ", scaling.low);
  only_with(position_ == "rope", "position=rope", {"rope_size", "rope_factor", "rope_length", "rope_low", "rope_high"});
}

void Builder::rope_to_the_end(Index key) {
  const bool ends = flag("rope_ends", false, "rope: angles are position * rope_base^(-2n/(key - 2)) as in torchscale");
  only_with(position_ == "rope", "position=rope", {"rope_ends"});
  if (ends && key > 2) rope_.base = std::pow(rope_.base, double(key) / double(key - 2));
}

Value Builder::rotated(Value in, const std::string& name) {
  const auto [heads, all] = std::pair(node(in).heads, node(in).size);
  const Index size = rope_size_ > 0 ? rope_size_ : all;
  const Value part = size < all ? slice(in, 0, size) : in;
  const Value turned = add_node({.name = name, .work = rope_, .inputs = {part.node}, .heads = heads, .size = size});
  return size < all ? named(name, concat({turned, slice(in, size, all - size)})) : turned;
}

Value Builder::positioned(Value in) {
  const auto [heads, size] = std::pair(node(in).heads, node(in).size);
  if (position_ == "none" || position_ == "learned") return in;
  require(size % 2 == 0, preset(), "position=", position_, " needs an even key size, got ", size, "; key=", size + 1,
          " is the nearest");
  // The rotated query goes by the name of the query.
  const std::string name = node(in).name.empty() && !node(in).inputs.empty() ? node({node(in).inputs[0]}).name : node(in).name;
  if (position_ == "rope") return rotated(in, name);
  if (!angles_.present()) angles_ = angles(heads, size / 2);
  require(node(angles_).heads == heads, preset(), "position=selective-rope needs as many heads of keys as of queries, got ",
          heads, " and ", node(angles_).heads);
  return add_node({.name = name, .work = graph::Rotate{}, .inputs = {in.node, angles_.node}, .heads = heads, .size = size});
}

std::vector<double> Builder::temperatures(Index size) const {
  std::vector<double> all;
  for (Index n = 0; n < size; ++n) {
    // tan(a/2) with a from 0 to 0.9999 pi; the last is the largest.
    const double angle = 0.9999 * std::numbers::pi, last = std::tan(angle / 2);
    const double at = size == 1 ? 1 : double(n) / double(size - 1);
    all.push_back(phase_.maximum * (phase_.temperature == "rope"  ? std::pow(phase_.base, -double(n) / double(size))
                                    : phase_.temperature == "rfa" ? std::tan(angle * at / 2) / last
                                                                  : 1));
  }
  return all;
}

Value Builder::angles(Index heads, Index size) {
  require(width() % heads == 0, preset(), "position=selective-rope needs heads that divide the width ", width(), ", got ", heads);
  // Inputs of length one in each head, so that a large input does not make fast rotations (1e-12 guards a zero row).
  const Value in = normalise("", this->heads(x(), heads), {.kind = Norm::l2, .eps = 1e-12});
  Value phase;
  if (phase_.rank > 0) {
    phase = this->heads(low_rank("phase", in, {.rank = phase_.rank, .size = heads * size}), heads);
  } else {
    phase = head_linear("phase", in, size, {.unit_rows = true, .weight = graph::normal(1)});
    phase = multiply(phase, parameter("phase_scale", heads, 1, graph::constant(1)));
  }
  if (phase_.convolution)
    phase = convolution("phase_conv", phase, {.width = 4, .silu = phase_.silu});
  else
    phase = subtract(phase, shift(phase));
  if (phase_.bias) phase = add(phase, map(Unary::exp, parameter("phase_bias", heads, size, graph::constant(0))));
  if (phase_.gate)
    phase = multiply(phase, map(Unary::sigmoid, this->heads(linear("phase_gate", in, heads, {.bias = true}), heads)));
  // The factor is taken before the sum, which is kept in double: what leaves it is the angle itself.
  const graph::Init factors{.kind = graph::Init::Kind::list, .values = temperatures(size)};
  phase = multiply(phase, parameter("phase_temperature", 1, size, factors, graph::Training::fixed));
  return named("angle",
               add_node({.work = graph::RunningSum{.angle = true}, .inputs = {phase.node}, .heads = heads, .size = size}));
}

}  // namespace isomer
