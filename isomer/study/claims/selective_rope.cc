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

/// Real part of the law over complex numbers x, which is linear in them.
std::vector<double> turned(const std::vector<double>& angle, const Complexes& x, Context& context) {
  const std::vector<double> none(angle.size(), 0.0);
  const Complexes of_real = rotate(none, angle, x.real, context), of_imaginary = rotate(none, angle, x.imaginary, context);
  std::vector<double> sum = of_real.real;
  for (std::size_t t = 0; t < sum.size(); ++t) sum[t] -= of_imaginary.imaginary[t];
  return sum;
}

/// Root mean square of the difference between softmax attention and its estimate by D states that turn with the query.
double estimate_by_turning(const Matrix& q, const Matrix& k, const std::vector<double>& v, int directions, Rng& rng,
                           Context& context) {
  const std::size_t T = v.size();
  std::vector<double> above(T, 0.0), below(T, 0.0), angle(T);
  for (int i = 0; i < directions; ++i) {
    const Matrix w = gaussian(1, q.columns, rng);
    Complexes values, ones;
    for (std::size_t t = 0; t < T; ++t) {
      const Index at = Index(t);
      const double wq = row_product(w, 0, q, at), phase = wq - row_product(w, 0, k, at);
      angle[t] = t == 0 ? 0 : wq - row_product(w, 0, q, at - 1);
      const double size = std::exp((row_product(q, at, q, at) + row_product(k, at, k, at)) / 2);
      ones.real.push_back(size * std::cos(phase)), ones.imaginary.push_back(size * std::sin(phase));
      values.real.push_back(ones.real[t] * v[t]), values.imaginary.push_back(ones.imaginary[t] * v[t]);
    }
    const std::vector<double> num = turned(angle, values, context), den = turned(angle, ones, context);
    for (std::size_t t = 0; t < T; ++t) above[t] += num[t], below[t] += den[t];
  }
  double error = 0;
  for (std::size_t t = 0; t < T; ++t) {
    double num = 0, den = 0;
    for (std::size_t s = 0; s <= t; ++s) {
      const double weight = std::exp(row_product(q, Index(t), k, Index(s)));
      num += weight * v[s], den += weight;
    }
    error += std::pow(above[t] / below[t] - num / den, 2) / double(T);
  }
  return std::sqrt(error);
}

Claim softmax_turns() {
  return {.id = "selective-rope.softmax-turns",
          .statement =
              "Softmax attention on queries of one length is a mean of states that turn by w.(q_t - q_(t-1)), with w drawn at "
              "random, and do not decay.",
          .quantity =
              "root mean square difference between softmax attention and its estimate by D such states, 32 tokens, d = 4, "
              "queries and keys of length 1, against D; and the slope of it",
          .rule = all_of({at_least("slope", -0.6), at_most("slope", -0.4)}),
          .published = {{.name = "equal in the limit of many w: an error like D^-1/2", .where = "section on softmax, derived"}},
          .figure = {.kind = "loglog",
                     .x = "turning states",
                     .y = "difference",
                     .caption = "The more states turn, the closer their mean is to softmax attention."},
          .units = {{"slope", "slope"}},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            const Index T = 32, d = 4;
            const int repetitions = budget.pick(8, 16);
            const std::vector<double> counts{64, 256, 1024};
            for (const std::uint64_t seed : budget.draws()) {
              Rng rng{seed};
              std::vector<double> errors(counts.size(), 0.0);
              for (int repetition = 0; repetition < repetitions; ++repetition) {
                const Matrix q = unit_rows(gaussian(T, d, rng)), k = unit_rows(gaussian(T, d, rng));
                const Row v = normal_row(std::size_t(T), rng);
                for (std::size_t i = 0; i < counts.size(); ++i)
                  errors[i] += estimate_by_turning(q, k, v, int(counts[i]), rng, context) / repetitions;
              }
              for (std::size_t i = 0; i < counts.size(); ++i) found.add("difference", counts[i], errors[i]);
              found.add("slope", log_slope(counts, errors));
            }
          }};
}

Claim two_reflections() {
  return {.id = "selective-rope.reflections",
          .statement =
              "A turn of Selective RoPE is a product of two reflections, which are two steps of a delta rule with a beta of 2.",
          .quantity =
              "largest difference between the cosine and sine of 64 random angles added up and a state that the delta law "
              "reflected 128 times",
          .rule = at_most("largest difference", 1e-12),
          .published = {{.name = "an identity", .where = "section on expressivity"}},
          .figure = {.kind = "lines",
                     .x = "turns",
                     .y = "cosine of the sum of angles",
                     .caption = "Turned and reflected states: they lie on each other."},
          .measure = [](const Budget&, Context& context, Evidence& found) {
            constexpr Index kTurns = 64, T = 1 + 2 * kTurns;
            Rng rng{1};
            std::vector<double> angle(kTurns + 1, 0.0), none(kTurns + 1, 0.0), x(kTurns + 1, 0.0);
            Tensor k(Type::f64, {1, T, 1, 2}), v(Type::f64, {1, T, 1, 1}), beta(Type::f64, {1, T, 1});
            std::fill_n(v.data<double>(), T, 0.0), std::fill_n(beta.data<double>(), T, 2.0);
            const auto set_key = [&](Index t, double at) {
              k.data<double>()[2 * t] = std::cos(at), k.data<double>()[2 * t + 1] = std::sin(at);
            };
            x[0] = 1, v.data<double>()[0] = 1, beta.data<double>()[0] = 1, set_key(0, 0);
            for (Index i = 1; i <= kTurns; ++i) {
              angle[std::size_t(i)] = 2 * kPi * rng.uniform();
              // Two mirrors at half of the angle to each other.
              const double first = kPi * rng.uniform();
              set_key(2 * i - 1, first), set_key(2 * i, first + angle[std::size_t(i)] / 2);
            }
            const Complexes wanted = rotate(none, angle, x, context);
            Tensors in;
            in.emplace("q", Tensor(Type::f64, {1, T, 1, 2})), in.emplace("k", std::move(k));
            in.emplace("v", std::move(v)), in.emplace("beta", std::move(beta));
            double worst = 0;
            for (const bool sine : {false, true}) {
              for (Index t = 0; t < T; ++t) {
                double* q = in.at("q").data<double>() + 2 * t;
                q[0] = sine ? 0 : 1, q[1] = sine ? 1 : 0;
              }
              const Tensors out = apply(
                  find_law("delta"), {.inputs = in, .settings = {{"scale", "1"}}, .form = Form::automatic, .context = context});
              const double* reflected = out.at("o").data<double>();
              for (Index i = 0; i <= kTurns; ++i) {
                const double want = (sine ? wanted.imaginary : wanted.real)[std::size_t(i)];
                worst = std::max(worst, std::abs(reflected[2 * i] - want));
                if (sine) continue;
                found.put_point("turned", double(i), want);
                found.put_point("reflected twice", double(i), reflected[2 * i]);
              }
            }
            found.put("largest difference", worst);
          }};
}

}  // namespace

Source selective_rope() {
  std::vector<Claim> claims{parity_by_rotation(), softmax_turns(), two_reflections(), leakage(), feature_scale()};
  std::ranges::move(selective_rope_words(), std::back_inserter(claims));
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
