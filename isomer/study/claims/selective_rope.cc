// "Selective Rotary Position Embedding", Movahedi et al. 2025.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "isomer/laws/law.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

constexpr double kPi = std::numbers::pi;

/// The law h = exp(log_decay + i angle) h + x over [T] numbers: h and h_imag.
struct Complexes {
  std::vector<double> real, imaginary;
};
Complexes rotate(const std::vector<double>& log_decay, const std::vector<double>& angle, const std::vector<double>& x,
                 Context& context) {
  const Index T = Index(x.size());
  const auto tensor = [T](const std::vector<double>& from) {
    Tensor to(Type::f64, {1, T, 1});
    std::ranges::copy(from, to.data<double>());
    return to;
  };
  Tensors in;
  in.emplace("log_decay", tensor(log_decay)), in.emplace("angle", tensor(angle)), in.emplace("x", tensor(x));
  const Tensors out = apply(find_law("scan"), {.inputs = in, .settings = {}, .form = Form::automatic, .context = context});
  const auto numbers = [&](const char* name) {
    const double* first = out.at(name).data<double>();
    return std::vector<double>(first, first + T);
  };
  return {numbers("h"), numbers("h_imag")};
}

Claim parity_by_rotation() {
  return {.id = "selective-rope.parity",
          .statement =
              "One layer with input-dependent angles computes parity at any length: turn by pi at a one, not at a zero; positive "
              "decays alone never change the sign of their state.",
          .quantity =
              "share of 4,096 prefixes whose parity is the sign of the state; and of a gated state without rotation, the best of "
              "both signs",
          .rule = all_of({at_least("rotation", 1), at_most("decay only", 0.55)}),
          .published = {{.name = "solves and extrapolates", .where = "state-tracking figure, direction only"}},
          .figure = {.kind = "bars",
                     .caption = "Turning by pi at a one gives every prefix; a gate without rotation gives half of them."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            for (const std::uint64_t seed : budget.draws()) {
              Rng rng{seed};
              const std::size_t T = 4096;
              std::vector<double> bits(T), angle(T), none(T, 0.0), decay(T, -1e-3), x(T, 0.0);
              for (std::size_t t = 1; t < T; ++t) bits[t] = rng.uniform() < 0.5 ? 0 : 1, angle[t] = kPi * bits[t];
              x[0] = 1;  // written once, at the start
              const Complexes turned = rotate(none, angle, x, context), decayed = rotate(decay, none, x, context);
              double right = 0, other = 0;
              bool odd = false;
              for (std::size_t t = 0; t < T; ++t) {
                odd = odd != (bits[t] == 1);
                right += (turned.real[t] < 0) == odd ? 1 : 0;
                other += (decayed.real[t] < 0) == odd ? 1 : 0;
              }
              found.add("rotation", right / double(T));
              found.add("decay only", std::max(other, double(T) - other) / double(T));
            }
          }};
}

Claim leakage() {
  return {
      .id = "selective-rope.leakage",
      .statement =
          "A state that only rotates is a Fourier transform through a rectangular window and leaks; a real decay is a smooth "
          "window that suppresses the leakage.",
      .quantity =
          "answer of states rotating at frequencies far from an off-bin sinusoid of 256 tokens, over the answer at it, against "
          "the decay per token; and the answers themselves",
      .rule = all_of({monotone("side lobes", Trend::falling, 0), greater("no decay", "decay 0.1", 0.005)}),
      .published = {{.name = "decay suppresses spectral leakage", .where = "section 3, direction only"}},
      .figure = {.kind = "lines",
                 .x = "decay a token",
                 .y = "side lobes / main lobe",
                 .caption =
                     "The answers far off sink with the decay, those at the signal sink faster: a causal state forgets the "
                     "past smoothly, but its window still ends abruptly at the newest token."},
      .otherwise =
          "the paper: with the decay the answers far off sink, and so does the answer at the signal, faster; a causal state is a "
          "window that ends abruptly at the newest token, whatever the decay is",
      .measure = [](const Budget&, Context& context, Evidence& found) {
        const std::size_t T = 256;
        const double signal = 2 * kPi * 20.5 / double(T);
        for (const double alpha : {0.0, 0.01, 0.03, 0.1}) {
          // Ends where the wave does not close, so that a rectangular window shows.
          std::vector<double> x(T), decay(T, -alpha);
          for (std::size_t t = 0; t < T; ++t) x[t] = std::cos(signal * double(t) + 0.7);
          const auto answer = [&](double frequency) {
            const Complexes h = rotate(decay, std::vector<double>(T, frequency), x, context);
            return std::hypot(h.real.back(), h.imaginary.back());
          };
          double side = 0;
          constexpr int kBins = 12;
          for (int i = 0; i < kBins; ++i) side += answer(2 * kPi * (60 + 4 * i) / double(T)) / kBins;
          const double share = side / answer(signal);
          found.put_point("side lobes themselves", alpha, side);
          found.put_point("side lobes", alpha, share);
          if (alpha == 0) found.put("no decay", share);
          if (alpha == 0.1) found.put("decay 0.1", share);
        }
      }};
}

/// Mean squared error of an estimate of exp(q·k) by D random directions of deviation sigma, for unit q and k at an angle.
double estimate_error(double sigma, double angle, bool conjugated, int trials, Rng& rng) {
  constexpr int kDirections = 16;
  const double exact = std::exp(std::cos(angle));
  double error = 0;
  for (int trial = 0; trial < trials; ++trial) {
    double sum = 0;
    for (int i = 0; i < kDirections; ++i) {
      const double w0 = sigma * rng.normal(), w1 = sigma * rng.normal();  // the plane of q and k is all that matters
      const double wq = w0, wk = std::cos(angle) * w0 + std::sin(angle) * w1;
      sum += std::exp(1.0) * std::cos(conjugated ? wq - wk : wq + wk) / kDirections;
    }
    error += (sum - exact) * (sum - exact) / trials;
  }
  return error;
}

double best_sigma(double angle, bool conjugated, int trials, std::uint64_t seed) {
  double best = 0, least = 1e300;
  for (double sigma = 0.3; sigma <= 2; sigma += 0.05) {
    Rng rng{seed, 3};  // common numbers for all sigmas
    const double error = estimate_error(sigma, angle, conjugated, trials, rng);
    if (error < least) least = error, best = sigma;
  }
  return best;
}

Claim feature_scale() {
  return {
      .id = "selective-rope.feature-scale",
      .statement = "The best scale of random Fourier features for queries and keys at an angle theta is tan(theta/2).",
      .quantity =
          "scale with the least squared error of exp(q.k) at theta = 60 degrees, 16 directions: with the conjugate, which makes "
          "the estimate unbiased, and without",
      .rule = all_of({equal("with the conjugate", "tan(theta/2)", 0.15), equal("without it", "tan(theta/2)", 0.15)}),
      .published = {{.name = "tan(theta/2)", .value = std::tan(kPi / 6), .where = "theorem 1"}},
      .figure = {.kind = "lines",
                 .x = "scale",
                 .y = "squared error",
                 .caption = "With the conjugate the minimum stays near 1; tan(theta/2) belongs to the product without it."},
      .otherwise =
          "the paper: its theorem is of the product without the conjugate, which does not estimate exp(q.k); with it the best "
          "scale is near 1 at this angle",
      .measure = [](const Budget& budget, Context&, Evidence& found) {
        const double angle = kPi / 3;
        const int trials = budget.pick(1500, 8000);
        for (const std::uint64_t seed : budget.draws()) {
          found.add("with the conjugate", best_sigma(angle, true, trials, seed));
          found.add("without it", best_sigma(angle, false, trials, seed));
          for (double sigma = 0.3; sigma <= 2; sigma += 0.1) {
            Rng rng{seed, 9};
            found.add("with the conjugate", sigma, estimate_error(sigma, angle, true, trials, rng));
            found.add("without it", sigma, estimate_error(sigma, angle, false, trials, rng));
          }
        }
        found.put("tan(theta/2)", std::tan(angle / 2));
      }};
}

}  // namespace

Source selective_rope() {
  std::vector<Claim> claims{parity_by_rotation(), leakage(), feature_scale()};
  std::ranges::move(selective_rope_models(), std::back_inserter(claims));
  return {.id = "selective-rope",
          .title = "Movahedi et al. 2025, Selective Rotary Position Embedding",
          .about =
              "Softmax attention rotates its hidden features by angles that depend on the input. Linear models gain the same by "
              "rotating "
              "queries and keys with learned, cumulative angles: rotation for position, decay for forgetting.",
          .claims = std::move(claims)};
}

}  // namespace isomer::study
