// "LUNA: Linear Universal Neural Attention with Generalization Guarantees", Shahbazi et al. 2025.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "isomer/mixers/preset.h"
#include "isomer/nn/small_layer.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

/// Spectra of a layer's Gram matrices of key features, one a sequence and head: from the largest down, over the largest.
std::vector<std::vector<double>> spectra(std::uint64_t seed, double deviation, Context& context) {
  SmallLayer<double> layer(build_mixer("luna", {.width = 16}));
  Rng rng{seed, 5};
  for (const Parameter<double>& p : layer.parameters().all())
    for (double& value : p.values()) value = deviation * rng.normal();
  Tape<double> tape(context, Record::no);
  std::vector<std::vector<double>> all;
  for (const LawCall& call : layer.law_calls(tape)) {
    const auto k = call.inputs.at("k").view<const double, 4>();
    for (Index b = 0; b < k.shape[0]; ++b)
      for (Index h = 0; h < k.shape[2]; ++h) {
        Matrix gram{k.shape[1], k.shape[1]};
        for (Index t = 0; t < k.shape[1]; ++t)
          for (Index s = 0; s < k.shape[1]; ++s)
            for (Index c = 0; c < k.shape[3]; ++c) gram(t, s) += k(b, t, h, c) * k(b, s, h, c);
        std::vector<double> values = symmetric_eigenvalues(gram);
        std::ranges::reverse(values);
        if (!(values.front() > 0)) continue;
        for (std::size_t i = values.size(); i-- > 0;) values[i] /= values.front();
        all.push_back(std::move(values));
      }
  }
  return all;
}

Claim positive() {
  return {.id = "luna.positive",
          .statement = "The learned kernel is positive semi-definite whatever its weights are.",
          .quantity =
              "smallest eigenvalue of the Gram matrix of LUNA's features over its largest, the worst of random weights of "
              "deviation 0.1, 1 and 3",
          .rule = at_least("smallest eigenvalue", -1e-9),
          .published = {{.name = "proposition 1", .where = "section 3"}},
          .figure = {.kind = "loglog",
                     .x = "eigenvalue, from the largest",
                     .y = "over the largest",
                     .caption = "Spectra of the kernel with random weights: none goes below zero by more than rounding."},
          .measure = [](const Budget&, Context& context, Evidence& found) {
            double least = 1e300;
            for (const double deviation : {0.1, 1.0, 3.0})
              for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                const auto all = spectra(seed, deviation, context);
                for (const std::vector<double>& values : all) least = std::min(least, values.back());
                for (std::size_t i = 0; seed == 1 && i < all.at(0).size(); ++i)
                  found.put_point("deviation " + text_of(deviation), double(i + 1), all[0][i]);
              }
            found.put("smallest eigenvalue", least);
          }};
}

/// Mean of a product of features over m random directions against the kernel, as a root mean square over pairs of length
/// `size` in d = 8, relative to the kernel.
struct Kernel {
  double (*estimate)(double wx, double wy, double xx, double yy);
  double (*exact)(double xy, double xx, double yy);
};
double kernel_error(const Kernel& kernel, Index m, double size, int pairs, Rng& rng) {
  const Index d = 8;
  double error = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const Matrix x = mapped(unit_rows(gaussian(2, d, rng)), [size](double value) { return size * value; });
    const double xx = row_product(x, 0, x, 0), yy = row_product(x, 1, x, 1), xy = row_product(x, 0, x, 1);
    double sum = 0;
    for (Index i = 0; i < m; ++i) {
      const Matrix w = gaussian(1, d, rng);
      sum += kernel.estimate(row_product(w, 0, x, 0), row_product(w, 0, x, 1), xx, yy) / double(m);
    }
    error += std::pow(sum / kernel.exact(xy, xx, yy) - 1, 2) / pairs;
  }
  return std::sqrt(error);
}

// psi(u) = exp(u) with the envelope exp(-|x|^2/2).
constexpr Kernel kPerformer{
    .estimate = [](double wx, double wy, double xx, double yy) { return std::exp(wx - xx / 2) * std::exp(wy - yy / 2); },
    .exact = [](double xy, double, double) { return std::exp(xy); }};
// psi = (cos, sin), no envelope: the Gaussian kernel.
constexpr Kernel kRandomFourier{
    .estimate = [](double wx, double wy, double, double) { return std::cos(wx) * std::cos(wy) + std::sin(wx) * std::sin(wy); },
    .exact = [](double xy, double xx, double yy) { return std::exp(-(xx + yy - 2 * xy) / 2); }};

Claim special_cases() {
  return {
      .id = "luna.special-cases",
      .statement =
          "Random Fourier features and the Performer are LUNA with psi and envelope set by hand; their error falls like "
          "m^-1/2, and the Performer's grows fast with the size of the queries.",
      .quantity =
          "relative root mean square error of the kernel against m directions; of the Performer at 256 directions for inputs of "
          "length 2.5 over that for length 1",
      .rule = all_of({slope("Performer", -0.6, -0.4), slope("random Fourier features", -0.6, -0.4),
                      at_least("Performer's error at length 2.5 over length 1", 5)}),
      .published = {{.name = "special cases of the template", .where = "section 3, equation 11"}},
      .figure = {.kind = "loglog",
                 .x = "directions m",
                 .y = "relative error",
                 .caption = "Four times the directions halve the error."},
      .measure = [](const Budget& budget, Context&, Evidence& found) {
        const int pairs = budget.pick(600, 6000);
        for (const std::uint64_t seed : budget.draws()) {
          Rng rng{seed};
          for (const Index m : {16, 64, 256}) {
            found.add("Performer", double(m), kernel_error(kPerformer, m, 1, pairs, rng));
            found.add("random Fourier features", double(m), kernel_error(kRandomFourier, m, 1, pairs, rng));
          }
          const double longer = kernel_error(kPerformer, 256, 2.5, pairs, rng),
                       usual = kernel_error(kPerformer, 256, 1, pairs, rng);
          found.add("Performer's error at length 2.5 over length 1", longer / usual);
        }
      }};
}

}  // namespace

Source luna() {
  std::vector<Claim> claims{positive(), special_cases()};
  std::ranges::move(luna_features(), std::back_inserter(claims));
  std::ranges::move(luna_models(), std::back_inserter(claims));
  std::ranges::move(luna_pretrained(), std::back_inserter(claims));
  std::ranges::move(luna_pictures(), std::back_inserter(claims));
  std::ranges::move(luna_texts(), std::back_inserter(claims));
  std::ranges::move(luna_tables(), std::back_inserter(claims));
  std::ranges::move(luna_cost(), std::back_inserter(claims));
  return {.id = "luna",
          .title = "Shahbazi et al. 2025, LUNA: Linear Universal Neural Attention with Generalization Guarantees",
          .about =
              "The feature map of linear attention can be learned: projections, scalar functions of them and an envelope, "
              "trained with "
              "the task. It contains random features and the Performer, and takes the place of softmax in trained models.",
          .claims = std::move(claims)};
}

}  // namespace isomer::study
