// "On the Expressiveness of Softmax Attention: A RNN Perspective", Mongaras & Larson 2025.
#include <cmath>

#include "isomer/laws/attention/attention.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

/// 1 + s + … + s^P / P!
double taylor(double s, int order) {
  double term = 1, sum = 1;
  for (int n = 1; n <= order; ++n) sum += term *= s / n;
  return sum;
}

// ---------------------------------------------------------------------------------------------------------------------------

Claim recurrence() {
  return {
      .id = "softmax-rnn.recurrence",
      .statement =
          "Attention with the Taylor polynomial of the exponential is a recurrent network on Kronecker powers of the keys.",
      .quantity =
          "largest difference between masked polynomial attention and the recurrence, over orders 0 to 8, relative to the "
          "largest output",
      .rule = at_most("largest difference", 1e-10),
      .published = {{.name = "an identity", .where = "equations of section 3"}},
      .figure = {.kind = "loglog", .x = "order", .y = "difference", .caption = "Both sides agree to rounding at every order."},
      .measure = [](const Budget&, Context& context, Evidence& found) {
        Rng rng{1};
        const Index T = 24, K = 3, V = 4;
        const Matrix q = gaussian(T, K, rng), k = gaussian(T, K, rng), v = gaussian(T, V, rng);
        const auto view = [](const Matrix& x) { return contiguous(x.values.data(), {1, T, 1, x.columns}); };
        double worst = 0;
        for (int order = 0; order <= 8; ++order) {
          const AttentionOptions options{
              .kernel = AttentionOptions::Kernel::taylor, .order = order, .normaliser = AttentionOptions::Normaliser::none};
          Matrix parallel{T, V}, recurrent{T, V};
          const AttentionInputs<double> in{.q = view(q), .k = view(k), .v = view(v)};
          attention<double>(in, options, Form::chunk, {.o = contiguous(parallel.values.data(), {1, T, 1, V})}, context);
          attention_kronecker<double>(in, options, {.o = contiguous(recurrent.values.data(), {1, T, 1, V})});
          double most = 0;
          for (const double x : parallel.values) most = std::max(most, std::abs(x));
          const double error = largest_difference(parallel, recurrent) / most;
          found.put_point("difference", order, error);
          worst = std::max(worst, error);
        }
        found.put("largest difference", worst);
      }};
}

/// Mean total variation between softmax and its truncation over `draws` rows of 64 scores of deviation `sd`.
struct Truncation {
  double distance = 0;
  double bound_violations = 0;
};
Truncation truncation(double sd, int order, int draws, Rng& rng) {
  Truncation found;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> full, cut;
    double full_sum = 0, cut_sum = 0;
    for (int i = 0; i < 64; ++i) {
      const double s = sd * rng.normal(), e = std::exp(s), t = taylor(s, order);
      const double bound = std::pow(std::abs(s), order + 1) / std::tgamma(order + 2) * std::max(1.0, e);
      found.bound_violations += std::abs(e - t) > bound * (1 + 1e-9) + 1e-13 * e ? 1 : 0;
      full.push_back(e), cut.push_back(t);
      full_sum += e, cut_sum += t;
    }
    double distance = 0;
    for (std::size_t i = 0; i < full.size(); ++i) distance += std::abs(full[i] / full_sum - cut[i] / cut_sum) / 2;
    found.distance += distance / draws;
  }
  return found;
}

Claim truncation_error() {
  return {.id = "softmax-rnn.truncation",
          .statement =
              "The order at which the series meets softmax is set by the size of the scores, not by their number: order 10 is "
              "enough for scores of deviation 1 and not for deviation 3.",
          .quantity = "total variation between truncated and full softmax weights over 64 keys with scores N(0, sd^2)",
          .rule = all_of({at_most("sd 1, order 10", 1e-4), at_least("sd 3, order 10", 0.02), monotone("sd 1", Trend::falling, 0),
                          monotone("sd 2", Trend::falling, 0), at_most("weights outside of Taylor's bound", 0)}),
          .published = {{.name = "order 10 recovers softmax in training", .where = "figure of orders, direction only"}},
          .figure = {.kind = "loglog",
                     .x = "order (even)",
                     .y = "total variation",
                     .caption = "The larger the scores, the more terms softmax needs."},
          .measure = [](const Budget& budget, Context&, Evidence& found) {
            const int draws = budget.pick(50, 500);
            double violations = 0;
            for (const std::uint64_t seed : budget.draws())
              for (const double sd : {0.5, 1.0, 2.0, 3.0}) {
                char name[16];
                std::snprintf(name, sizeof name, "sd %g", sd);
                for (const int order : {2, 4, 6, 8, 10, 16}) {
                  Rng rng{seed, std::uint64_t(order * 100) + std::uint64_t(sd * 10)};
                  const Truncation cut = truncation(sd, order, draws, rng);
                  violations += cut.bound_violations;
                  found.add(name, order, cut.distance);
                  if (order == 10 && (sd == 1 || sd == 3)) found.add(name + std::string(", order 10"), cut.distance);
                }
              }
            found.put("weights outside of Taylor's bound", violations);
          }};
}

Claim even_orders() {
  return {
      .id = "softmax-rnn.even-orders",
      .statement = "Polynomials of even order keep all weights positive, so that dividing by their sum is safe; odd ones do not.",
      .quantity = "negative weights among 100,000 scores N(0, 3^2), orders 1 to 9",
      .rule = all_of({at_most("negative weights, even orders", 0), at_least("negative weights, odd orders", 1)}),
      .published = {{.name = "only even orders are plotted", .where = "figure of orders"}},
      .figure = {.kind = "bars",
                 .x = "order",
                 .y = "share of negative weights",
                 .caption = "Odd orders make weights negative where scores are."},
      .measure = [](const Budget&, Context&, Evidence& found) {
        Rng rng{1};
        std::vector<double> scores(100000);
        for (double& s : scores) s = 3 * rng.normal();
        double even = 0, odd = 0;
        for (int order = 1; order <= 9; ++order) {
          double negative = 0;
          for (const double s : scores) negative += taylor(s, order) < 0 ? 1 : 0;
          (order % 2 == 0 ? even : odd) += negative;
          found.put_point("share", order, negative / double(scores.size()));
        }
        found.put("negative weights, even orders", even);
        found.put("negative weights, odd orders", odd);
      }};
}

/// (M − 1)·(2p − 1)!! / Π_{l<p} (d + 2l)
double predicted_interference(Index M, Index d, int p) {
  double error = double(M - 1);
  for (int l = 0; l < p; ++l) error *= double(2 * l + 1) / double(d + 2 * l);
  return error;
}

/// E‖o − v_j‖² of reading one of M random unit pairs back with the kernel (q·k)^p.
double interference(Index M, Index d, int p, int trials, Rng& rng) {
  double error = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Matrix k = unit_rows(gaussian(M, d, rng)), v = unit_rows(gaussian(M, d, rng));
    for (Index c = 0; c < d; ++c) {
      double rest = 0;
      for (Index j = 1; j < M; ++j) rest += std::pow(row_product(k, 0, k, j), p) * v(j, c);
      error += rest * rest / trials;
    }
  }
  return error;
}

Claim capacity() {
  return {
      .id = "softmax-rnn.capacity",
      .statement = "A term of order p stores about d^p/(2p-1)!! pairs at equal error: higher orders hold polynomially more.",
      .quantity =
          "squared error of reading back one of 32 random unit pairs through (q.k)^p, over the formula; and the slope of that "
          "error against d",
      .rule = all_of({at_least("measured / predicted", 0.9), at_most("measured / predicted", 1.1), slope("p = 1", -1.1, -0.9),
                      slope("p = 2", -2.1, -1.7), slope("p = 3", -3.1, -2.4)}),
      .published = {{.name = "higher orders store more", .where = "section 3, direction only"}},
      .figure = {.kind = "loglog",
                 .x = "head size d",
                 .y = "interference",
                 .caption = "Interference falls like d^-p: each order has more room than the one before."},
      .measure = [](const Budget& budget, Context&, Evidence& found) {
        const int trials = budget.pick(400, 3000);
        for (const std::uint64_t seed : budget.draws()) {
          double ratio = 0;
          for (int p = 1; p <= 3; ++p)
            for (const Index d : {8, 16, 32}) {
              Rng rng{seed, std::uint64_t(p * 100 + d)};
              const double error = interference(32, d, p, trials, rng);
              found.add("p = " + std::to_string(p), double(d), error);
              ratio += error / predicted_interference(32, d, p) / 9;
            }
          found.add("measured / predicted", ratio);
        }
      }};
}

Claim norm_equivalence() {
  return {
      .id = "softmax-rnn.norm-is-softmax",
      .statement =
          "An L2 norm in place of the denominator gives exactly the normed output of softmax attention: the sum of weights "
          "cancels.",
      .quantity = "largest difference between N(sum of exp(s) v) and N(softmax attention), float32 rounding in mind",
      .rule = at_most("largest difference", 1e-6),
      .published = {{.name = "derived from the definitions", .where = "section 4, the norm"}},
      .figure = {.kind = "bars",
                 .y = "largest difference",
                 .caption =
                     "A norm in place of the denominator against the normed output of softmax: nothing but rounding is left."},
      .measure = [](const Budget&, Context& context, Evidence& found) {
        Rng rng{1};
        const Matrix q = gaussian(64, 16, rng), k = gaussian(64, 16, rng), v = gaussian(64, 16, rng);
        Matrix sums{64, 16};
        for (Index i = 0; i < 64; ++i)
          for (Index j = 0; j < 64; ++j)
            for (Index c = 0; c < 16; ++c) sums(i, c) += std::exp(row_product(q, i, k, j) / 4) * v(j, c);
        const Matrix softmax = run_law("attention", {}, q, k, v, context);
        const Matrix normed = run_law("attention", {{"normaliser", "l2"}}, q, k, v, context);
        const double of_softmax = largest_difference(unit_rows(sums), unit_rows(softmax)),
                     of_norm = largest_difference(unit_rows(sums), normed);
        found.put("sums with a norm against softmax with a norm", of_softmax);
        found.put("sums with a norm against the law with its norm", of_norm);
        found.put("largest difference", std::max(of_softmax, of_norm));
      }};
}

// ---------------------------------------------------------------------------------------------------------------------------
// Language models on bytes. The text is the Jargon File, which `tools/setup text` installs.

constexpr const char* kBytes = R"(
[model]
width = 32
layers = ["softmax*2"]
deviation = 0.12  # with 0.02, scores stay near 0 for hundreds of steps and softmax has hardly begun to attend
[mixer.all]
heads = 2
position = "rope"
[task]
name = "text"
length = 128
[train]
steps = 400
batch = 8
warmup = 30
eval_examples = 64
)";

const Figure kBits{.kind = "bars", .y = "bits per byte", .caption = "Softmax and what takes its place; lower is better."};

/// Two layers of a mixer, with options.
Contender bytes_model(std::string name, const std::string& preset, const std::vector<std::string>& options = {}) {
  Contender model{.name = std::move(name), .set = {"model.layers=" + preset + "*2"}, .rate = 1e-2};
  for (const std::string& option : options) model.set.push_back("mixer." + preset + "." + option);
  return model;
}

Claim norm_or_gate() {
  std::vector<Contender> models{bytes_model("softmax", "softmax"), bytes_model("norm", "softmax-norm"),
                                bytes_model("gate", "softmax-gate")};
  return trained(
      {.id = "softmax-rnn.norm",
       .statement = "A norm in place of the denominator does what softmax does; a gate over the number of tokens is worse.",
       .quantity =
           "bits per byte of language models of two layers after 400 steps, lower is better; learning rate searched (quick: 200 "
           "steps at one)",
       .rule = all_of({equal("norm", "softmax", 0.1), greater("gate", "softmax", 0.05)}),
       .published = {{.name = "softmax, loss in nats", .value = 2.57, .where = "The Pile, 0.28 B parameters (figure)"},
                     {.name = "norm, loss in nats", .value = 2.57, .where = "same"},
                     {.name = "gate, loss in nats", .value = 2.62, .where = "same"}},
       .figure = kBits},
      {.recipe = kBytes,
       .quick = {"train.steps=200", "train.warmup=20"},
       .models = std::move(models),
       .judged = Judged::after_equal_steps});
}

Claim orders() {
  std::vector<Contender> models{bytes_model("softmax", "softmax")};
  for (const int order : {2, 4, 6, 8, 10}) {
    Contender model = bytes_model("Taylor polynomial", "taylor", {"order=" + std::to_string(order)});
    model.x = order;
    model.full_only = true;
    models.push_back(model);
  }
  return trained(
      {.id = "softmax-rnn.orders",
       .statement = "The loss falls with every even order of the Taylor polynomial and meets that of softmax near order 8 to 10.",
       .quantity = "bits per byte of language models of two layers after 400 steps, weights divided by their sum; learning rate "
                   "searched for each",
       .rule = all_of({monotone("Taylor polynomial", Trend::falling, 0.03), equal("order 10", "softmax", 0.05)}),
       .published = {{.name = "order 2, loss in nats", .value = 3.84, .where = "FineWeb, 0.28 B parameters, 30k steps (figure)"},
                     {.name = "order 10, loss in nats", .value = 3.34, .where = "same"},
                     {.name = "softmax, loss in nats", .value = 3.32, .where = "same"}},
       .figure = {.kind = "lines",
                  .x = "order",
                  .y = "bits per byte",
                  .caption = "Order by order the loss comes down to that of softmax, the line across.",
                  .levels = {"softmax"}},
       .units = {{"softmax", "bits per byte"}, {"order 10", "bits per byte"}},
       .full_only = true},
      {.recipe = kBytes, .models = std::move(models), .judged = Judged::after_equal_steps},
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        for (const CellResult* run : chosen.back().runs) found.add("order 10", run->value);
      });
}

Claim linear_trails() {
  const std::vector<std::string> relu{"feature=relu"}, elu{"feature=elu"};
  const auto powers = [](std::vector<std::string> options) {
    options.push_back("order=4");
    return options;
  };
  return trained(
      {.id = "softmax-rnn.linear-trails",
       .statement = "Linear attention with ReLU, elu or cosine features trails softmax; adding higher powers of its weights "
                    "helps and does "
                    "not close the gap.",
       .quantity = "bits per byte of language models of two layers after 400 steps, learning rate searched for each; with "
                   "powers: orders 0 to 4 of the weights",
       .rule = all_of({greater("ReLU", "softmax", 0.05), greater("elu", "softmax", 0.05), greater("cosine", "softmax", 0.05),
                       greater("ReLU", "ReLU with powers", 0.02), greater("elu", "elu with powers", 0.02),
                       greater("ReLU with powers", "softmax", 0.02), greater("elu with powers", "softmax", 0.02)}),
       .published = {{.name = "softmax, loss in nats", .value = 2.73, .where = "FineWeb, 300 M parameters, follow-up"},
                     {.name = "linear attention with ReLU", .value = 3.03, .where = "same"}},
       .figure = kBits,
       .full_only = true},
      {.recipe = kBytes,
       .models = {bytes_model("softmax", "softmax"), bytes_model("ReLU", "linear-relu"), bytes_model("elu", "linear-elu"),
                  bytes_model("cosine", "linear-cosine"), bytes_model("ReLU with powers", "taylor", powers(relu)),
                  bytes_model("elu with powers", "taylor", powers(elu))},
       .judged = Judged::after_equal_steps});
}

Claim ablation() {
  const auto softmax = [](std::string name, const std::vector<std::string>& options) {
    return bytes_model(std::move(name), "softmax", options);
  };
  return trained(
      {.id = "softmax-rnn.ablation",
       .statement = "Of the recurrent view of softmax, the exponential and some norm are what matters: the kind of norm hardly "
                    "does, and a "
                    "gate does not replace it.",
       .quantity =
           "bits per byte of language models of two layers after 1,200 steps, each with a part of softmax exchanged and a "
           "learning rate searched for it; the figure has more exchanges than the rule asks for",
       .rule = all_of({equal("RMS norm", "L2 norm", 0.1), equal("layer norm", "L2 norm", 0.1),
                       greater("no norm, over t", "L2 norm", 0.05), greater("ReLU with L2 norm", "L2 norm", 0.05),
                       greater("gate over t", "L2 norm", 0.05)}),
       .published = {{.name = "exponential and norm are both needed, the kind of norm barely matters",
                      .where = "ablation of components, direction only"}},
       .figure = kBits,
       .unclear = "size: seeds differ by as much as the rule allows between norms",
       .full_only = true},
      {.recipe = kBytes,
       .full = {"train.steps=1200"},
       .models = {softmax("softmax", {}), bytes_model("L2 norm", "softmax-norm"), softmax("RMS norm", {"norm=rms"}),
                  softmax("layer norm", {"norm=layer"}), bytes_model("no norm, over t", "softmax-count"),
                  bytes_model("gate over t", "softmax-gate"),
                  softmax("gate, not over t", {"denominator=none", "out_gate=after", "clamp=5"}),
                  softmax("denominator of at least 1", {"denominator=clamp", "clamp=5"}),
                  softmax("detached denominator", {"denominator=detach", "clamp=5"}),
                  softmax("cumulative denominator", {"denominator=cumulative", "clamp=5"}),
                  softmax("gates in and out, layer norm", {"denominator=count", "norm=layer", "in_gate=true", "out_gate=before"}),
                  bytes_model("ReLU with L2 norm", "linear-relu", {"denominator=none", "norm=l2"})},
       .judged = Judged::after_equal_steps});
}

}  // namespace

Source softmax_rnn() {
  return {.id = "softmax-rnn",
          .title = "Mongaras & Larson 2025, On the Expressiveness of Softmax Attention: A RNN Perspective",
          .about =
              "Softmax attention is a recurrent network whose state holds all Kronecker powers of the keys; linear attention is "
              "its first-order term. The denominator can be a gate or a norm. Adding orders closes the gap to softmax.",
          .claims = {recurrence(), truncation_error(), even_orders(), capacity(), norm_equivalence(), norm_or_gate(), orders(),
                     linear_trails(), ablation()}};
}

}  // namespace isomer::study
