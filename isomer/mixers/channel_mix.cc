#include "isomer/mixers/channel_mix.h"

#include <cmath>

#include "isomer/mixers/parts.h"

namespace isomer {

graph::Graph channel_mix(Index width, Index hidden, double rest) {
  Builder m("channel-mix", {.width = width}, {});
  graph::Init start{.kind = graph::Init::Kind::list, .values = parts::channel_powers(width, std::pow(rest, 4))};
  for (double& value : start.values) value = 1 - value;
  const Value x = m.x(), mix = m.parameter("mix", 1, width, start);
  const Value mixed = m.named("x'", parts::token_shift(m, x, m.subtract(m.shift(x), x), mix));
  const Value up = m.linear("up", mixed, hidden, {.weight = parts::rwkv_matrix(1)});
  m.output(m.linear("down", m.map(Unary::square, m.map(Unary::relu, up)), width, {.weight = graph::constant(0)}));
  return m.finish();
}

}  // namespace isomer
