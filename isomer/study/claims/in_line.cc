// "Bridging the Divide: Reconsidering Softmax and Linear Attention" (InLine), Han et al. 2024.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "isomer/laws/attention/attention.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

const Settings kSoftmax = {}, kDivision = {{"normaliser", "sum"}}, kInLine = {{"normaliser", "subtract"}};

double relu(double x) { return std::max(x, 0.0); }

Matrix softmax_weights(const Matrix& q, const Matrix& k, Context& context) {
  return law_weights("attention", kSoftmax, q, k, context);
}
/// Linear attention with relu, divided by the sum.
Matrix linear_weights(const Matrix& q, const Matrix& k, Context& context) {
  return law_weights("scalar_decay", kDivision, mapped(q, relu), mapped(k, relu), context);
}
Matrix in_line_weights(const Matrix& q, const Matrix& k, Context& context) {
  return law_weights("scalar_decay", kInLine, mapped(q, relu), mapped(k, relu), context);
}

/// The largest difference between any two rows.
double spread_of_rows(const Matrix& x) {
  double most = 0;
  for (Index j = 0; j < x.columns; ++j) {
    double low = x(0, j), high = x(0, j);
    for (Index i = 1; i < x.rows; ++i) low = std::min(low, x(i, j)), high = std::max(high, x(i, j));
    most = std::max(most, high - low);
  }
  return most;
}

// ---------------------------------------------------------------------------------------------------------------------------

// Read off figure 1a: four keys, and four queries of one direction.
const Matrix kKeys = matrix({{0.62, 1.85}, {1.03, 1.03}, {1.95, 0.65}, {1.8, 0.32}});
Matrix figure_queries() {
  Matrix q{4, 2};
  const double lengths[] = {0.35, 0.6, 0.83, 1};
  for (Index i = 0; i < 4; ++i) q(i, 0) = lengths[i] * 1.13, q(i, 1) = lengths[i] * 2.05;
  return q;
}

Claim collinear_collapse() {
  return {.id = "inline.collapse-collinear",
          .statement =
              "Linear attention gives queries of one direction and any length the same weights; softmax and InLine tell them "
              "apart.",
          .quantity = "largest difference between the weights of the four queries of figure 1a",
          .rule = all_of({at_most("linear attention", 1e-6), at_least("softmax", 0.05), at_least("InLine", 0.05)}),
          .published = {{.name = "softmax, first weight of the shortest query", .value = 0.31, .where = "figure 1a"},
                        {.name = "softmax, first weight of the longest query", .value = 0.44, .where = "figure 1a"},
                        {.name = "InLine, first weight of the longest query", .value = 0.42, .where = "figure 1a"},
                        {.name = "linear attention, first weight of any query", .value = 0.32, .where = "figure 1a"}},
          .figure = {.kind = "lines",
                     .x = "length of the query",
                     .y = "weight of the first key",
                     .caption = "Division cancels the length of the query; subtraction keeps it."},
          .measure = [](const Budget&, Context& context, Evidence& found) {
            const Matrix q = figure_queries();
            const Matrix soft = softmax_weights(q, kKeys, context), linear = linear_weights(q, kKeys, context),
                         in_line = in_line_weights(q, kKeys, context);
            for (Index i = 0; i < 4; ++i) {
              const double length = std::sqrt(row_product(q, i, q, i));
              found.put_point("softmax", length, soft(i, 0));
              found.put_point("InLine", length, in_line(i, 0));
              found.put_point("linear attention", length, linear(i, 0));
            }
            found.put("linear attention", spread_of_rows(linear));
            found.put("softmax", spread_of_rows(soft));
            found.put("InLine", spread_of_rows(in_line));
            found.put("softmax, first weight of the shortest query", soft(0, 0));
            found.put("softmax, first weight of the longest query", soft(3, 0));
            found.put("InLine, first weight of the longest query", in_line(3, 0));
            found.put("linear attention, first weight of any query", linear(0, 0));
          }};
}

Claim affine_collapse() {
  return {.id = "inline.collapse-affine",
          .statement =
              "With relu(Ax + b) even queries of different directions collapse to the same weights under division, and not under "
              "subtraction.",
          .quantity =
              "largest difference between the weights of queries with relu(A q + b) = c u, c = 0.5, 1, 2; and the largest cosine "
              "between two of these queries",
          .rule = all_of({at_most("linear attention", 1e-6), at_least("InLine", 0.05), at_most("cosine of the queries", 0.999)}),
          .published = {{.name = "collapse of queries of other directions", .where = "figure 1b, direction only"}},
          .figure = {.kind = "bars",
                     .y = "largest difference between weights",
                     .caption = "Distance between the weights of two queries: none with division, some with subtraction."},
          .measure = [](const Budget&, Context& context, Evidence& found) {
            const Matrix A = matrix({{1, 0.5}, {-0.3, 1}});
            const double b[] = {0.4, -0.2}, u[] = {1, 2}, det = 1 + 0.5 * 0.3;
            Matrix q{3, 2}, features{3, 2};
            const double c[] = {0.5, 1, 2};
            for (Index i = 0; i < 3; ++i) {
              const double x = c[i] * u[0] - b[0], y = c[i] * u[1] - b[1];
              q(i, 0) = (x - 0.5 * y) / det, q(i, 1) = (0.3 * x + y) / det;
              for (Index r = 0; r < 2; ++r) features(i, r) = relu(A(r, 0) * q(i, 0) + A(r, 1) * q(i, 1) + b[r]);
            }
            const Matrix keys = mapped(kKeys, relu);
            found.put("linear attention", spread_of_rows(law_weights("scalar_decay", kDivision, features, keys, context)));
            found.put("InLine", spread_of_rows(law_weights("scalar_decay", kInLine, features, keys, context)));
            const Matrix directions = unit_rows(q);
            double cosine = -1;
            for (Index i = 0; i < 3; ++i)
              for (Index j = 0; j < i; ++j) cosine = std::max(cosine, row_product(directions, i, directions, j));
            found.put("cosine of the queries", cosine);
            found.set_unit("cosine of the queries", "cosine");
          }};
}

/// Share of pairs of random queries at least 0.5 apart whose weights differ by less than 1e-3 everywhere.
double confused(const Matrix& queries, const Matrix& weights) {
  double pairs = 0, same = 0;
  for (Index i = 0; i < queries.rows; ++i)
    for (Index j = 0; j < i; ++j) {
      double distance = 0, difference = 0;
      for (Index c = 0; c < queries.columns; ++c) distance += std::pow(queries(i, c) - queries(j, c), 2);
      for (Index c = 0; c < weights.columns; ++c) difference = std::max(difference, std::abs(weights(i, c) - weights(j, c)));
      if (distance < 0.25) continue;
      pairs += 1, same += difference < 1e-3 ? 1 : 0;
    }
  return same / pairs;
}

Claim confusion() {
  return {.id = "inline.confusion",
          .statement = "Linear attention confuses far more pairs of different queries than InLine and softmax do.",
          .quantity =
              "share of pairs of 400 random queries, at least 0.5 apart, whose weights over 16 keys differ by less than 1e-3 "
              "(d = 2, relu)",
          .rule = all_of({greater("linear attention", "InLine", 0.001), greater("linear attention", "softmax", 0.001)}),
          .published = {{.name = "more confusion in linear attention",
                         .where = "figure 2, direction only; its threshold is not known"}},
          .figure = {.kind = "bars",
                     .y = "share of pairs",
                     .caption = "Share of pairs of queries that get nearly the same weights: linear attention stands apart."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            for (const std::uint64_t seed : budget.draws()) {
              Rng rng{seed};
              const Matrix q = gaussian(400, 2, rng), k = gaussian(16, 2, rng);
              found.add("linear attention", confused(q, linear_weights(q, k, context)));
              found.add("InLine", confused(q, in_line_weights(q, k, context)));
              found.add("softmax", confused(q, softmax_weights(q, k, context)));
            }
          }};
}

Claim first_order() {
  return {
      .id = "inline.first-order",
      .statement = "InLine without a feature map is softmax to first order in the logits: the error is quadratic in their scale.",
      .quantity = "largest difference between outputs of softmax and InLine against the scale of the queries",
      .rule = slope("difference", 1.9, 2.1),
      .published = {{.name = "derived from the definitions", .where = "equation 5"}},
      .figure = {.kind = "loglog",
                 .x = "scale of the queries",
                 .y = "difference",
                 .caption = "A tenth of the logits, a hundredth of the error."},
      .measure = [](const Budget& budget, Context& context, Evidence& found) {
        for (const std::uint64_t seed : budget.draws())
          for (const double scale : {0.3, 0.1, 0.03, 0.01}) {
            Rng rng{seed};
            Matrix q = gaussian(64, 16, rng);
            const Matrix k = gaussian(64, 16, rng), v = gaussian(64, 16, rng);
            for (double& x : q.values) x *= scale;
            found.add("difference", scale,
                      largest_difference(run_law("attention", kSoftmax, q, k, v, context),
                                         run_law("scalar_decay", kInLine, q, k, v, context)));
          }
      }};
}

Claim finite() {
  return {
      .id = "inline.finite",
      .statement = "Without positive features division blows up where its denominator crosses zero; subtraction stays finite.",
      .quantity = "largest output over 20,000 queries with features of any sign, values N(0, 1), 16 keys",
      .rule = all_of({at_least("division", 100), at_most("InLine", 20)}),
      .published = {{.name = "linear attention with features of any sign fails to train",
                     .where = "table of kernels, direction only"}},
      .figure = {.kind = "bars",
                 .y = "largest output",
                 .caption = "Largest output: division blows up where its denominator crosses zero, subtraction does not."},
      .measure = [](const Budget& budget, Context& context, Evidence& found) {
        for (const std::uint64_t seed : budget.draws()) {
          Rng rng{seed};
          const Matrix q = gaussian(20000, 4, rng), k = gaussian(16, 4, rng), v = gaussian(16, 4, rng);
          const auto largest = [](const Matrix& x) {
            double most = 0;
            for (const double value : x.values) most = std::max(most, std::isfinite(value) ? std::abs(value) : 1e300);
            return most;
          };
          found.add("division", largest(run_law("scalar_decay", kDivision, q, k, v, context)));
          found.add("InLine", largest(run_law("scalar_decay", kInLine, q, k, v, context)));
        }
      }};
}

Claim length_of_the_query() {
  return {.id = "inline.reads-length",
          .statement =
              "A target that depends on the length of the query is out of reach for division with relu, which gives it no "
              "variance, and within reach for InLine and softmax.",
          .quantity = "variance of the output over queries c q, c = 0.5 ... 2, divided by that over random queries",
          .rule = all_of({at_most("linear attention", 1e-12), at_least("InLine", 1e-3), at_least("softmax", 1e-3)}),
          .published = {{.name = "follows from injectivity", .where = "propositions 1 to 3"}},
          .figure = {.kind = "bars",
                     .y = "variance over lengths / over random queries",
                     .caption = "What the length of the query does to the output, over what another query does: nothing with "
                                "division."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            const auto variance = [](const Matrix& x) {
              double mean = 0, square = 0;
              for (const double value : x.values) mean += value / double(x.values.size());
              for (const double value : x.values) square += (value - mean) * (value - mean) / double(x.values.size());
              return square;
            };
            for (const std::uint64_t seed : budget.draws()) {
              Rng rng{seed};
              // Of positive entries: where relu leaves nothing of a query, division has nothing to divide.
              const Matrix others = mapped(gaussian(32, 4, rng), [](double x) { return std::abs(x); });
              const Matrix k = gaussian(16, 4, rng), v = gaussian(16, 1, rng);
              Matrix lengths{32, 4};
              for (Index i = 0; i < 32; ++i)
                for (Index j = 0; j < 4; ++j) lengths(i, j) = (0.5 + 1.5 * double(i) / 31) * (1 + others(0, j));
              const auto ratio = [&](const std::string& law, const Settings& settings, bool features) {
                const auto run = [&](const Matrix& q) {
                  return run_law(law, settings, features ? mapped(q, relu) : q, features ? mapped(k, relu) : k, v, context);
                };
                return variance(run(lengths)) / variance(run(others));
              };
              found.add("linear attention", ratio("scalar_decay", kDivision, true));
              found.add("InLine", ratio("scalar_decay", kInLine, true));
              found.add("softmax", ratio("attention", kSoftmax, false));
            }
          }};
}

/// Outputs as sums over weights that are written out: phi(q).phi(k_j) s / N - their mean + 1 / N.
Matrix written_out(const Matrix& q, const Matrix& k, const Matrix& v) {
  const double N = double(k.rows), s = 1 / std::sqrt(double(k.columns));
  Matrix o{q.rows, v.columns};
  for (Index i = 0; i < q.rows; ++i) {
    double mean = 0;
    for (Index j = 0; j < k.rows; ++j) mean += row_product(q, i, k, j) / N;
    for (Index j = 0; j < k.rows; ++j)
      for (Index c = 0; c < v.columns; ++c) o(i, c) += (s * (row_product(q, i, k, j) - mean) + 1) / N * v(j, c);
  }
  return o;
}

Claim linear_form() {
  return {.id = "inline.linear-form",
          .statement = "InLine's weights sum to 1, and a state of fixed size gives what the matrix of weights gives.",
          .quantity =
              "largest difference from 1 of the sum of a query's weights, and between outputs of the state and of the weights "
              "written out; 64 tokens, d = 16, relu",
          .rule = all_of({at_most("sum of weights", 1e-12), at_most("outputs", 1e-12)}),
          .published = {{.name = "by definition", .where = "equation 5"}},
          .figure = {.kind = "bars",
                     .y = "largest difference",
                     .caption = "A state of fixed size against the whole matrix of weights: nothing but rounding is left."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            for (const std::uint64_t seed : budget.draws()) {
              Rng rng{seed};
              const Matrix q = mapped(gaussian(64, 16, rng), relu), k = mapped(gaussian(64, 16, rng), relu),
                           v = gaussian(64, 16, rng), ones = mapped(Matrix{64, 1}, [](double) { return 1.0; });
              found.add("sum of weights", largest_difference(run_law("scalar_decay", kInLine, q, k, ones, context), ones));
              found.add("outputs", largest_difference(run_law("scalar_decay", kInLine, q, k, v, context), written_out(q, k, v)));
            }
          }};
}

constexpr Index kHeads = 1, kHead = 32;  // one, so that the longest sequences stay in the cache

/// The least processor seconds of a few turns, all tokens seen, one thread.
class Timed {
 public:
  explicit Timed(Index longest) {
    Rng rng{1};
    for (std::vector<float>* x : {&q_, &k_, &v_, &o_}) {
      x->resize(std::size_t(longest * kHeads * kHead));
      for (float& value : *x) value = float(rng.normal());
    }
  }
  double softmax(Index N, int turns, Context& context) {
    return least(turns, [&] {
      attention<float>({.q = view(q_, N), .k = view(k_, N), .v = view(v_, N)},
                       {.direction = AttentionOptions::Direction::bidirectional}, Form::automatic, {.o = view(o_, N)}, context);
    });
  }
  double in_line(Index N, int turns, Context& context) {
    return least(turns, [&] {
      scalar_decay<float>(
          {.q = view(q_, N), .k = view(k_, N), .v = view(v_, N)},
          {.normaliser = ScalarDecayOptions::Normaliser::subtract, .direction = ScalarDecayOptions::Direction::global},
          Form::automatic, {.o = view(o_, N)}, context);
    });
  }

 private:
  static View<float, 4> view(std::vector<float>& x, Index N) { return contiguous(x.data(), {1, N, kHeads, kHead}); }
  template <class F>
  static double least(int turns, F work) {
    double best = 1e300;
    for (int turn = 0; turn < turns; ++turn) {
      const ProcessorTime watch;
      // Short ones several times, for the sake of the clock.
      int times = 0;
      do work(), ++times;
      while (watch.seconds() < 2e-4);
      best = std::min(best, watch.seconds() / times);
    }
    return best;
  }
  std::vector<float> q_, k_, v_, o_;
};

/// Where InLine is as fast as softmax: between neighbours times are straight lines in the logarithms; before 8 tokens nobody
/// asks.
double crossover_of(Timed& timed, int turns, Context& context) {
  double crossover = 4, before = 0;
  for (const Index N : {8, 16, 32, 64, 128, 256, 512}) {
    const double in_line = timed.in_line(N, turns, context), softmax = timed.softmax(N, turns, context);
    const double gap = std::log(in_line / softmax);
    if (gap <= 0) return N == 8 ? 8 : double(N) * std::exp2(gap / (before - gap));
    before = gap;
    crossover = 2 * double(N);
  }
  return crossover;
}

Claim runtime() {
  return {
      .id = "inline.runtime",
      .statement =
          "InLine takes time in proportion to the number of tokens N, softmax to its square; they meet at a few times the "
          "head size.",
      .quantity =
          "processor seconds of both laws, a head of d = 32, one thread, the least of several turns, against N from 512 to "
          "4096; and the N where both take the same time, over d; nine rounds (quick: five), in each all of it one after the "
          "other",
      .rule = all_of({slope("InLine", 0.9, 1.1), slope("softmax", 1.8, 2.1), at_least("crossover over d", 1),
                      at_most("crossover over d", 8)}),
      .published = {{.name = "Swin-T, 3.7 times as fast with windows of 56 x 56, slower with 7 x 7", .where = "figure of speed"},
                    {.name = "DeiT-T, parity at 196 tokens, 4.8 times as fast at 4096", .where = "figure of speed"}},
      .figure = {.kind = "loglog", .x = "tokens", .y = "seconds", .caption = "Slope 1 against slope 2, on this machine."},
      .otherwise =
          "size: with a head of 32 both take microseconds there, and the matrix of d x d numbers that InLine makes is as "
          "large as the one of N x N at N = d; the source's parity is of whole networks on a GPU",
      .unclear = "the intervals are of rounds on a machine that others may use",
      .measure = [](const Budget& budget, Context& context, Evidence& found) {
        constexpr int kTurns = 3;
        Timed timed(4096);
        double least = 1e300;
        for (int round = 0; round < budget.pick(5, 9); ++round) {
          for (const Index N : {512, 1024, 2048, 4096}) {
            found.add("softmax", double(N), timed.softmax(N, kTurns, context));
            found.add("InLine", double(N), timed.in_line(N, kTurns, context));
          }
          const double crossover = crossover_of(timed, kTurns, context);
          found.add("crossover over d", crossover / double(kHead));
          least = std::min(least, crossover);
        }
        if (least < double(kHead)) found.note("InLine is the faster one already below d tokens");
      }};
}

}  // namespace

Source in_line() {
  std::vector<Claim> claims{collinear_collapse(),  affine_collapse(), confusion(), first_order(), finite(),
                            length_of_the_query(), linear_form(),     runtime()};
  std::ranges::move(in_line_pictures(), std::back_inserter(claims));
  return {.id = "inline",
          .title = "Han et al. 2024, Bridging the Divide: Reconsidering Softmax and Linear Attention (InLine)",
          .about =
              "Linear attention is not injective: different queries get the same weights, since dividing by the sum cancels what "
              "tells them apart. Subtracting the mean instead keeps it, and a local residual restores what softmax sees nearby.",
          .claims = std::move(claims)};
}

}  // namespace isomer::study
