// "MetaLA: Unified Optimal Linear Approximation to Softmax Attention Map", Chou et al. 2024.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "isomer/laws/channel_decay/channel_decay.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

constexpr double kForget = -std::numeric_limits<double>::infinity();  // the logarithm of a decay of 0

/// One head of channel_decay on T tokens, scale 1: [T, values' columns].
Matrix run(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& log_decay, Context& context) {
  const Index T = q.rows;
  const auto view = [T](const Matrix& x) { return contiguous(x.values.data(), {1, T, 1, x.columns}); };
  Matrix o{T, v.columns};
  channel_decay<double>({.q = view(q), .k = view(k), .v = view(v), .log_decay = view(log_decay)}, {.scale = 1.0}, Form::automatic,
                        {.o = contiguous(o.values.data(), {1, T, 1, v.columns})}, context);
  return o;
}

/// A random row of softmax weights over T keys.
std::vector<double> softmax_row(Index T, Rng& rng) {
  std::vector<double> row(std::size_t(T), 0.0);
  double sum = 0;
  for (double& p : row) sum += p = std::exp(2 * rng.normal());
  for (double& p : row) p /= sum;
  return row;
}

Claim construction() {
  return {.id = "metala.construction",
          .statement =
              "Any rows of a softmax map can be written by queries and decays alone, all bounded by 1: a_s = P_(s-1)/P_s with "
              "the key tied to 1 - a.",
          .quantity = "largest error of 8 random softmax rows over 64 keys, rebuilt through the law with 8 channels",
          .rule = all_of({at_most("largest error", 1e-12), at_most("largest parameter", 1)}),
          .published = {{.name = "a constructive proof", .where = "proposition 4.2"}},
          .figure = {.kind = "lines",
                     .x = "key",
                     .y = "weight",
                     .caption = "A row of a softmax map and the one built of a query and decays: they lie on each other."},
          .measure = [](const Budget&, Context& context, Evidence& found) {
            Rng rng{1};
            const Index T = 64, rows = 8;
            Matrix log_decay{T, rows}, k{T, rows}, q{T, rows}, want{rows, T};
            double parameter = 0;
            for (Index r = 0; r < rows; ++r) {
              const std::vector<double> row = softmax_row(T, rng);
              double before = 0;
              for (Index s = 0; s < T; ++s) {
                const double p = row[std::size_t(s)], sum = before + p, a = before / sum;
                log_decay(s, r) = a > 0 ? std::log(a) : kForget;
                k(s, r) = p / sum;  // 1 - a without cancellation
                before = sum;
                want(r, s) = p;
                parameter = std::max({parameter, a, k(s, r)});
              }
            }
            // The last token reads each row with a query that selects its channel.
            double worst = 0;
            for (Index r = 0; r < rows; ++r) {
              Matrix one = q;
              one(T - 1, r) = 1;
              const Matrix o = run(one, k, identity(T), log_decay, context);
              for (Index s = 0; s < T; ++s) worst = std::max(worst, std::abs(o(T - 1, s) - want(r, s)));
              for (Index s = 0; r == 0 && s < T; ++s) {
                found.put_point("softmax", double(s + 1), want(r, s));
                found.put_point("query and decays", double(s + 1), o(T - 1, s));
              }
            }
            found.put("largest error", worst);
            found.put("largest parameter", parameter);
          }};
}

Claim fixed_decay() {
  return {
      .id = "metala.fixed-decay",
      .statement =
          "With a fixed decay alpha the keys must grow like alpha^-T to write a flat row of T weights; with a dynamic one "
          "nothing exceeds 1.",
      .quantity = "largest key that rebuilds a row of T equal weights exactly, alpha = 0.95, against T; and of the dynamic decay",
      .rule = all_of({at_least("fixed, growth a token", 1.04), at_most("fixed, growth a token", 1.06),
                      at_most("dynamic, T = 256", 1), at_most("largest error", 1e-9)}),
      .published = {{.name = "unbounded parameters for fixed decay", .where = "condition C2, section 4"}},
      .figure = {.kind = "loglog",
                 .x = "tokens",
                 .y = "largest key",
                 .caption = "To reach far back, a fixed decay needs keys that grow without bound; a dynamic one does not."},
      .measure = [](const Budget&, Context& context, Evidence& found) {
        const double alpha = 0.95;
        double error = 0, first = 0, last = 0;
        for (const Index T : {32, 64, 128, 256}) {
          Matrix log_decay{T, 1}, k{T, 1}, q{T, 1}, dynamic_decay{T, 1}, dynamic_k{T, 1};
          q(T - 1, 0) = 1;
          double most = 0, dynamic_most = 0;
          for (Index s = 0; s < T; ++s) {
            log_decay(s, 0) = std::log(alpha);
            k(s, 0) = std::pow(alpha, -double(T - 1 - s)) / double(T);
            dynamic_decay(s, 0) = s > 0 ? std::log(double(s) / double(s + 1)) : kForget;
            dynamic_k(s, 0) = 1 / double(s + 1);
            most = std::max(most, k(s, 0)), dynamic_most = std::max(dynamic_most, dynamic_k(s, 0));
          }
          for (const auto& [keys, decay] : {std::pair{&k, &log_decay}, std::pair{&dynamic_k, &dynamic_decay}}) {
            const Matrix o = run(q, *keys, identity(T), *decay, context);
            for (Index s = 0; s < T; ++s) error = std::max(error, std::abs(o(T - 1, s) * double(T) - 1));
          }
          found.put_point("fixed decay", double(T), most);
          found.put_point("dynamic decay", double(T), dynamic_most);
          if (T == 128) first = most * double(T);
          if (T == 256) last = most * double(T), found.put("dynamic, T = 256", dynamic_most);
        }
        found.put("fixed, growth a token", std::pow(last / first, 1.0 / 128));
        found.put("largest error", error);
      }};
}

Claim overwriting() {
  return {
      .id = "metala.overwrite",
      .statement = "Only a dynamic decay replaces a stored value by another: a fixed one leaves alpha of it, none leaves all.",
      .quantity = "what is left of the old value after a new one was written to its key, over its length; 8 keys, alpha = 0.9",
      .rule = all_of({at_most("dynamic decay", 1e-12), at_least("fixed decay", 0.89), at_most("fixed decay", 0.91),
                      at_least("no decay", 0.99)}),
      .published = {{.name = "fixed and no decay fail condition C1", .where = "section 4, direction only"}},
      .figure = {.kind = "bars",
                 .y = "of the old value left",
                 .caption = "What is left of the old value: nothing with a dynamic decay."},
      .measure = [](const Budget&, Context& context, Evidence& found) {
        Rng rng{1};
        const Index keys = 8, T = keys + 1, V = 8;
        const Matrix v = gaussian(T, V, rng);
        Matrix k{T, keys}, q{T, keys};
        for (Index t = 0; t < keys; ++t) k(t, t) = 1;
        k(keys, 3) = 1, q(keys, 3) = 1;  // the last token writes and reads key 3 again
        const auto left = [&](double at_rewrite, double elsewhere) {
          Matrix log_decay{T, keys};
          // Only the last write matters: what came before stands as it was written.
          for (Index c = 0; c < keys; ++c) log_decay(keys, c) = c == 3 ? at_rewrite : elsewhere;
          const Matrix o = run(q, k, v, log_decay, context);
          double rest = 0, old = 0;
          for (Index c = 0; c < V; ++c) rest += std::pow(o(keys, c) - v(keys, c), 2), old += v(3, c) * v(3, c);
          return std::sqrt(rest / old);
        };
        found.put("dynamic decay", left(kForget, 0));
        found.put("fixed decay", left(std::log(0.9), std::log(0.9)));
        found.put("no decay", left(0, 0));
      }};
}

}  // namespace

Source metala() {
  std::vector<Claim> claims{construction(), fixed_decay(), overwriting()};
  std::ranges::move(metala_recall(), std::back_inserter(claims));
  return {
      .id = "metala",
      .title = "Chou et al. 2024, MetaLA: Unified Optimal Linear Approximation to Softmax Attention Map",
      .about =
          "An optimal linear approximation of softmax needs dynamic memory, must be able to write any attention map with bounded "
          "parameters, and should have no parameter too many: queries and dynamic decays suffice, keys are redundant.",
      .claims = std::move(claims)};
}

}  // namespace isomer::study
