// lru: h_t = l∘h_{t-1} + e^gamma_log∘(B x_t), y = Re(C h) + D x, l = exp(-e^nu + i e^theta), |l| uniform in area between r_min
// and r_max at the start, the angle uniform up to max_phase, e^gamma_log = √(1 - |l|²). GELU and a gated projection after it.
#include <cmath>
#include <numbers>

#include "isomer/base/error.h"
#include "isomer/mixers/parts.h"

namespace isomer::preset::lru {

namespace {
void build(Builder& m) {
  using graph::Init;
  m.positions({"none", "learned"});
  const Index d = m.width(), N = m.size("state", d, "complex states");
  const double least = m.number("r_min", 0, "the least radius at the start"),
               most = m.number("r_max", 1, "the largest radius at the start");
  const double phase = m.number("max_phase", 2 * std::numbers::pi, "the largest angle at the start");
  require(0 <= least && least < most && most <= 1, m.preset(), "expected 0 <= r_min < r_max <= 1, got ", least, " and ", most);
  require(phase > 0, "max_phase", "expected a positive number, got ", phase);
  const Value nu = m.parameter("nu", 1, N, {.kind = Init::Kind::ring, .a = least, .b = most});
  const Value theta = m.parameter("theta", 1, N, {.kind = Init::Kind::log_uniform, .a = 0, .b = phase});
  const Value log_decay = m.named("log_decay", m.affine(m.map(Unary::exp, nu), -1));
  const Init root{.kind = Init::Kind::ring_root, .a = least, .b = most, .beside = "nu"};
  const Value gamma = m.named("gamma", m.map(Unary::exp, m.parameter("gamma_log", 1, N, root)));
  const graph::Linear in{.weight = graph::normal(1 / std::sqrt(2.0 * double(d)))};
  const Value h = m.scan({.log_decay = log_decay,
                          .x = m.multiply(gamma, m.linear("b_real", m.x(), N, in)),
                          .angle = m.named("angle", m.map(Unary::exp, theta)),
                          .x_imag = m.multiply(gamma, m.linear("b_imag", m.x(), N, in))});
  const Value y = m.linear("c", h, d, {.weight = graph::normal(1 / std::sqrt(double(N)))});
  parts::output_glu(m, parts::plus_input(m, y), Unary::gelu);
}
}  // namespace

extern const Preset lru{.name = "lru",
                        .source = "Orvieto et al. 2023, LRU (arXiv 2303.06349), eq. 3-8",
                        .summary = "a linear recurrent unit: learned rings of complex eigenvalues",
                        .build = build};

}  // namespace isomer::preset::lru
