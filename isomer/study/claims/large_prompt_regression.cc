// "Softmax as Linear Attention in the Large-Prompt Regime", continued: in-context regression and how it is learned.
// Prompt tokens (x, w.x), query (x, 0); by its invariant blocks attention is b times the softmax mean of y with logits x'A query.
#include <array>
#include <cmath>

#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"
#include "isomer/study/trained.h"

namespace isomer::study {

namespace {

Matrix toeplitz(Index d, double rho) {
  Matrix sigma{d, d};
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j) sigma(i, j) = std::pow(rho, std::abs(double(i - j)));
  return sigma;
}

double trace_of_product(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < a.columns; ++j) sum += a(i, j) * b(j, i);
  return sum;
}

Claim ode_endpoint() {
  return {
      .id = "large-prompt.regression-limit",
      .statement =
          "Gradient flow of in-context regression on infinite prompts ends at b = tr(S^-2)^(1/4), A = S^-1/b, with no risk "
          "left.",
      .quantity = "b after integrating the flow from a small balanced start, d = 5, Toeplitz covariance 0.5; and the risk",
      .rule = all_of({equal("b", "predicted b", 1e-3), at_most("risk", 1e-5)}),
      .published = {{.name = "limit of the flow", .where = "theorem 5.1, appendix"}},
      .figure = {.kind = "lines", .x = "time", .y = "risk", .caption = "The flow leaves its small start and ends without risk."},
      .measure = [](const Budget&, Context&, Evidence& found) {
        const Index d = 5;
        const Matrix sigma = toeplitz(d, 0.5), sigma2 = product(sigma, sigma);
        const double start = 0.1;
        Matrix A = identity(d);
        for (double& x : A.values) x *= start / std::sqrt(double(d));
        double b = start;
        const double dt = 2e-3;
        double risk = 0;
        for (int step = 0; step <= 100000; ++step) {
          const Matrix SAS = product(product(sigma2, A), sigma);
          if (step % 2000 == 0) {
            Matrix rest = product(sigma, A);
            for (Index i = 0; i < d; ++i)
              for (Index j = 0; j < d; ++j) rest(i, j) = b * rest(i, j) - (i == j ? 1 : 0);
            risk = trace_of_product(product(rest, sigma), transposed(rest)) / 2;
            if (step <= 20000) found.put_point("risk", dt * step, risk);
          }
          const double db = trace_of_product(transposed(A), sigma2) - b * trace_of_product(transposed(A), SAS);
          for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] += dt * (b * sigma2.values[i] - b * b * SAS.values[i]);
          b += dt * db;
        }
        Matrix inverse{d, d};
        for (Index j = 0; j < d; ++j) {
          Row unit(std::size_t(d), 0.0);
          unit[std::size_t(j)] = 1;
          const Row column = solve(sigma, unit);
          for (Index i = 0; i < d; ++i) inverse(i, j) = column[std::size_t(i)];
        }
        found.put("b", b);
        found.put("predicted b", std::pow(trace_of_product(inverse, inverse), 0.25));
        found.put("risk", risk);
      }};
}

/// The infinite-prompt risk of in-context regression, w ~ N(0, I), x ~ N(0, sigma): its gradient flow.
struct Flow {
  Matrix sigma, sigma2, A;
  double b;

  struct Gradient {
    Matrix A;
    double b;
  };
  [[nodiscard]] Gradient gradient() const {
    const Matrix SAS = product(product(sigma2, A), sigma);
    Gradient of{A, b * trace_of_product(transposed(A), SAS) - trace_of_product(transposed(A), sigma2)};
    for (std::size_t i = 0; i < A.values.size(); ++i) of.A.values[i] = b * b * SAS.values[i] - b * sigma2.values[i];
    return of;
  }
  void advance(double time, double dt) {
    for (; time > 0; time -= dt) {
      const Gradient down = gradient();
      for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] -= dt * down.A.values[i];
      b -= dt * down.b;
    }
  }
};

/// | grad R_L - grad R_infinity | at a point of the flow, over `trials` tasks. Each task's infinite-prompt gradient is taken from
/// its own, so that what varies from task to task cancels.
double gradient_gap(const Flow& at, Index L, int trials, Rng& rng) {
  const Index d = at.sigma.rows;
  const Matrix sigma_A = product(at.sigma, at.A);
  Matrix gap{d, d};
  double gap_b = 0;
  // Toeplitz 0.5 is an autoregression.
  const auto token = [&] {
    Row x = normal_row(std::size_t(d), rng);
    for (std::size_t i = 1; i < x.size(); ++i) x[i] = 0.5 * x[i - 1] + std::sqrt(0.75) * x[i];
    return x;
  };
  const auto times = [d](const Matrix& m, const Row& x) {
    Row y(std::size_t(d), 0.0);
    for (Index i = 0; i < d; ++i)
      for (Index j = 0; j < d; ++j) y[std::size_t(i)] += m(i, j) * x[std::size_t(j)];
    return y;
  };
  for (int trial = 0; trial < trials; ++trial) {
    const Row w = normal_row(std::size_t(d), rng), query = token();
    const Row a = times(at.A, query), limit = times(sigma_A, query), covariance = times(at.sigma, w);
    double sum = 0, y_mean = 0;
    Row x_mean(std::size_t(d), 0.0), xy_mean = x_mean;
    for (Index i = 0; i < L; ++i) {
      const Row x = token();
      const double y = dot(w, x), p = std::exp(dot(a, x));
      sum += p, y_mean += p * y;
      for (std::size_t j = 0; j < x.size(); ++j) x_mean[j] += p * x[j], xy_mean[j] += p * x[j] * y;
    }
    y_mean /= sum;
    const double target = dot(w, query), finite = at.b * y_mean - target, infinite = at.b * dot(w, limit) - target;
    gap_b += (finite * y_mean - infinite * dot(w, limit)) / trials;
    for (std::size_t i = 0; i < w.size(); ++i)
      for (std::size_t j = 0; j < w.size(); ++j)
        gap(Index(i), Index(j)) +=
            at.b * (finite * (xy_mean[i] - x_mean[i] * y_mean) / sum - infinite * covariance[i]) * query[j] / trials;
  }
  for (const double value : gap.values) gap_b = std::hypot(gap_b, value);
  return gap_b;
}

Claim training_gap() {
  return {
      .id = "large-prompt.training-gap",
      .statement =
          "Along training, the gradient of the finite-prompt risk is closer to that of the infinite one for long prompts than "
          "for short ones, at every checkpoint.",
      .quantity =
          "norm of the difference of the gradients at ten points of the infinite-prompt flow, d = 3, Toeplitz covariance "
          "0.5; the least ratio of the gap at L = 16 to that at 1024",
      .rule = at_least("least ratio", 1),
      .published = {{.name = "parameters of L = 16 over those of 1024, squared distance to the limit, least",
                     .value = 20,
                     .where = "reproduction, d = 4"}},
      .figure = {.kind = "lines",
                 .x = "time of the flow",
                 .y = "norm of the difference of gradients",
                 .caption = "A prompt of 1024 tokens trains as the limit does."},
      .measure = [](const Budget& budget, Context&, Evidence& found) {
        const Matrix sigma = toeplitz(3, 0.5);
        for (const std::uint64_t seed : budget.draws()) {
          Rng rng{seed, 16};
          Flow flow{sigma, product(sigma, sigma), identity(3), 0.2};
          for (double& x : flow.A.values) x *= flow.b / std::sqrt(3.0);
          double least = 1e300;
          for (int checkpoint = 0; checkpoint < 10; ++checkpoint) {
            const double near = gradient_gap(flow, 1024, budget.pick(1000, 10000), rng),
                         far = gradient_gap(flow, 16, budget.pick(4000, 40000), rng);
            found.add("L = 16", checkpoint, far);
            found.add("L = 1024", checkpoint, near);
            least = std::min(least, far / near);
            flow.advance(1, 1e-2);
          }
          found.add("least ratio", least);
        }
      }};
}

/// Squared errors of the best one-head softmax and linear attention, and of ridge regression, on prompts of L noisy pairs of
/// d = 5: against the value without noise, so that the least error is 0.
struct RegressionErrors {
  double softmax = 0, linear = 0, ridge = 0;
};
RegressionErrors regression_errors(Index L, int trials, Rng& rng) {
  constexpr std::size_t d = 5;
  constexpr double kNoise = 0.1;
  constexpr std::array kScales{0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8};
  // Of a reading s and the target t: E[s t], E[s s]; the best factor of s leaves E[t t] - E[s t]^2 / E[s s].
  struct Moments {
    double st = 0, ss = 0;
    void add(double s, double t) { st += s * t, ss += s * s; }
  };
  std::array<Moments, kScales.size()> softmax{};
  Moments linear;
  double tt = 0, ridge = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Row w = normal_row(d, rng);
    for (double& value : w) value /= std::sqrt(double(d));
    const Row query = normal_row(d, rng);
    std::array<double, kScales.size()> sums{}, values{};
    double plain = 0;
    Matrix gram = identity(Index(d));  // of the prior N(0, 1/d) in units of the noise
    for (double& value : gram.values) value *= kNoise * double(d);
    Row moment(d, 0.0);
    for (Index i = 0; i < L; ++i) {
      const Row x = normal_row(d, rng);
      const double y = dot(w, x) + std::sqrt(kNoise) * rng.normal(), score = dot(x, query);
      plain += score * y / double(L);
      for (std::size_t s = 0; s < kScales.size(); ++s) {
        const double p = std::exp(kScales[s] * score);
        sums[s] += p, values[s] += p * y;
      }
      for (std::size_t j = 0; j < d; ++j) {
        moment[j] += x[j] * y;
        for (std::size_t k = 0; k < d; ++k) gram(Index(j), Index(k)) += x[j] * x[k];
      }
    }
    const double target = dot(w, query), guess = dot(solve(gram, moment), query);
    tt += target * target;
    ridge += (guess - target) * (guess - target) / trials;
    linear.add(plain, target);
    for (std::size_t s = 0; s < kScales.size(); ++s) softmax[s].add(values[s] / sums[s], target);
  }
  const auto error = [&](const Moments& of) { return (tt - of.st * of.st / of.ss) / trials; };
  RegressionErrors errors{.softmax = 1e300, .linear = error(linear), .ridge = ridge};
  for (const Moments& of : softmax) errors.softmax = std::min(errors.softmax, error(of));
  return errors;
}

Claim regression() {
  return {
      .id = "large-prompt.regression",
      .statement =
          "In-context regression by one head: the errors of softmax and of linear attention go to 0 like 1 over the length of "
          "the "
          "prompt, and so does the gap between them; their ratio does not go to 1.",
      .quantity =
          "squared error above the noise of the best softmax head and the best linear head, d = 5, noise 0.1; ridge regression "
          "stands beside them in the figure",
      .rule = all_of({slope("softmax", -1.15, -0.7), slope("linear attention", -1.15, -0.85),
                      at_most("softmax minus linear attention, L = 1024", 0.02),
                      at_least("softmax / linear attention, L = 1024", 1.5)}),
      .published = {{.name = "both tend to the Bayes risk", .where = "theorem 5.1; the ratio, about e, is derived"}},
      .figure = {.kind = "loglog",
                 .x = "prompt length",
                 .y = "squared error above the noise",
                 .caption = "Parallel lines: the gap closes, the factor stays."},
      .measure = [](const Budget& budget, Context&, Evidence& found) {
        for (const std::uint64_t seed : budget.draws())
          for (const Index L : {64, 256, 1024}) {
            Rng rng{seed, std::uint64_t(L)};
            const RegressionErrors errors = regression_errors(L, budget.pick(1000, 8000), rng);
            found.add("softmax", double(L), errors.softmax);
            found.add("linear attention", double(L), errors.linear);
            found.add("ridge regression", double(L), errors.ridge);
            if (L < 1024) continue;
            found.add("softmax minus linear attention, L = 1024", errors.softmax - errors.linear);
            found.add("softmax / linear attention, L = 1024", errors.softmax / errors.linear);
          }
      }};
}

// One layer of one head of width 16, without an MLP, learns to regress.
constexpr const char* kRegression = R"(
[model]
width = 16
layers = ["softmax"]
mlp = "none"
deviation = 0.2
[mixer.all]
heads = 1
position = "none"
[task]
name = "regression"
dimension = 3
noise = 0.1
noisy_target = false
[train]
steps = 1500
batch = 32
warmup = 50
weight_decay = 0
eval_examples = 1024
)";

Claim trained_regression() {
  std::vector<Contender> models;
  for (const int L : {8, 32, 128}) {
    const std::string context = "task.context=" + std::to_string(L);
    models.push_back({.name = "softmax", .set = {context}, .rate = 3e-3, .x = L, .full_only = L == 32});
    models.push_back({.name = "linear attention",
                      .set = {context, "model.layers=linear-identity", "mixer.linear-identity.denominator=count",
                              "mixer.linear-identity.norm=none"},
                      .rate = 3e-3,
                      .x = L,
                      .full_only = L == 32});
  }
  return trained(
      {.id = "large-prompt.trained-regression",
       .statement =
           "Trained on in-context regression, softmax attention is further behind linear attention on short prompts than on "
           "long ones, where it is hardly behind, if at all.",
       .quantity = "squared error above the noise of one trained layer by the length of the prompt, d = 3; after equal steps",
       .rule = all_of({greater("gap, shortest prompt", "gap, longest prompt", 0.05), at_most("gap, longest prompt", 0.05)}),
       .published = {{.name = "the risks of both tend to the same limit", .where = "theorems 4.3 and 5.1, direction only"}},
       .figure = {.kind = "lines",
                  .x = "prompt length",
                  .y = "squared error above the noise",
                  .caption = "The longer the prompt, the less softmax lacks of linear attention."}},
      {.recipe = kRegression, .models = std::move(models), .judged = Judged::after_equal_steps},
      [](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
        // Softmax and linear attention in turn, by rising length.
        const auto gap = [&](const char* name, std::size_t at) {
          for (std::size_t seed = 0; seed < chosen[at].runs.size(); ++seed)
            found.add(name, chosen[at].runs[seed]->value - chosen[at + 1].runs[seed]->value);
        };
        gap("gap, shortest prompt", 0);
        gap("gap, longest prompt", chosen.size() - 2);
      });
}

}  // namespace

std::vector<Claim> large_prompt_regression() { return {ode_endpoint(), training_gap(), regression(), trained_regression()}; }

}  // namespace isomer::study
