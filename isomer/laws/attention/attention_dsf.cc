// Attention as a dynamical system: unrolled, with a slot of state for each key that is kept, or as the Taylor recurrence on
// monomials of the key (Mongaras & Larson 2025; Sieber et al. 2024, eq. 2). Either way the normaliser η_t is one number a token.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/watch.h"
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/dsf.h"

namespace isomer {

namespace {
using namespace dsf_detail;

double polynomial(double x, int order) {
  double term = 1, sum = 1;
  for (int n = 1; n <= order; ++n) sum += term *= x / n;
  return sum;
}

/// One head: what its queries see, with which weights.
struct Head {
  const DsfSource& from;
  Index T, before, keys;  // queries, keys before the first query, all keys
  Index window, sinks;
  double clamp;
  bool taylor;
  std::optional<int> order;  // of the polynomial in place of exp
  std::vector<Vector> q, k, v;
  Vector forget;  // logarithms, of the keys' tokens

  explicit Head(const DsfSource& source)
      : from(source),
        T(source.sequence.length),
        before(source.size("S") - source.size("T")),
        keys(T + before),
        window(read_size(source.settings, "window", 0)),
        sinks(read_size(source.settings, "sinks", 0)),
        clamp(read_limit(source.settings, "clamp")),
        taylor(source.text("kernel", "exp") == "taylor"),
        order(taylor ? int(read_size(source.settings, "order", 2)) : source.options.order) {
    for (Index t = 0; t < T; ++t) q.push_back(from.row("q", t));
    for (Index key = 0; key < keys; ++key) {
      k.push_back(from.row("k", key));
      v.push_back(from.row("v", key));
      forget.push_back(from.number("log_forget", key, 0));
    }
  }
  [[nodiscard]] bool sees(Index t, Index key) const {
    const Index position = t + before;
    return key <= position && (window == 0 || key > position - window || key < sinks);
  }
  [[nodiscard]] Index count(Index t) const {
    Index n = 0;
    for (Index key = 0; key < keys; ++key) n += sees(t, key) ? 1 : 0;
    return n;
  }
  /// Of a key's place seen from the query.
  [[nodiscard]] double bias(Index t, Index key) const {
    if (!from.given("bias")) return 0;
    const Index N = from.size("N"), r = std::max(key - t - before, 1 - N);
    return from.tensor("bias").data<double>()[from.place.head * N + N - 1 + r];
  }
  /// κ(min(scale · q·k, clamp)) with the bias, before any decay.
  [[nodiscard]] double weight(Index t, Index key) const {
    double dot = 0;
    for (std::size_t i = 0; i < q[t].size(); ++i) dot += q[t][i] * k[key][i];
    const double logit = std::min(from.scale() * dot, clamp);
    return order ? polynomial(logit, *order) : std::exp(logit + bias(t, key));
  }
  /// The decay of a key between its own token and another.
  [[nodiscard]] double kept(Index key, Index position) const {
    double sum = 0;
    for (Index l = key + 1; l <= position; ++l) sum += forget[l];
    return std::exp(sum);
  }
};

/// η_t with o_t = Σ_s w_ts v_s / η_t.
double eta(const Head& head, Index t) {
  const std::string kind = head.from.text("normaliser", "sum");
  if (kind == "none") return 1;
  if (kind == "count" || kind == "gate") return double(head.count(t));
  const Index V = head.from.size("V");
  Vector x(std::size_t(V), 0.0);
  double sum = 0;
  for (Index key = 0; key < head.keys; ++key) {
    if (!head.sees(t, key)) continue;
    const double w = head.weight(t, key) * head.kept(key, t + head.before);
    for (Index c = 0; c < V; ++c) x[c] += w * head.v[key][c];
    sum += w;
  }
  if (kind == "sum") return sum + read_number(head.from.settings, "eps", 0);
  // The other normalisers act on the weighted mean with the exp kernel, on the sum with the polynomial.
  const double unit = head.taylor ? 1 : sum;
  double mean = 0, square = 0, variance = 0;
  for (double& e : x) mean += (e /= unit) / double(V);
  for (double e : x) square += e * e, variance += (e - mean) * (e - mean) / double(V);
  const auto eps = [&](double fallback) { return read_number(head.from.settings, "eps", fallback); };
  if (kind == "l2") return unit * std::max(std::sqrt(square), eps(1e-12));
  if (kind == "rms") return unit * std::sqrt(square / double(V) + eps(1e-6));
  return unit * std::sqrt(variance + eps(1e-5));
}

/// [1, x, the monomials of order 2, …], each times the root of its multinomial coefficient over n!, so that two of them multiply
/// to Σ_{n ≤ order} (x·y)^n / n!.
Vector monomials(const Vector& x, int order) {
  Vector all{1.0};
  struct Term {
    std::size_t last;  // the largest variable in it
    int power;         // of that variable
    double value;
  };
  std::vector<Term> terms{{0, 0, 1.0}};
  for (int n = 1; n <= order; ++n) {
    std::vector<Term> next;
    for (const Term& term : terms)
      for (std::size_t i = term.last; i < x.size(); ++i) {
        // Each variable to the power a brings a factor 1/√a!.
        const int power = i == term.last ? term.power + 1 : 1;
        next.push_back({i, power, term.value * x[i] / std::sqrt(double(power))});
        all.push_back(next.back().value);
      }
    terms = std::move(next);
  }
  return all;
}

/// A slot for each key, or for those of the window (a ring) and the sinks.
struct Slots {
  Index keys, window, sinks;

  explicit Slots(const Head& head) : keys(head.keys), window(head.window), sinks(std::min(head.sinks, head.keys)) {
    if (window + sinks >= keys) window = 0;
  }
  [[nodiscard]] Index size() const { return window == 0 ? keys : window + sinks; }
  [[nodiscard]] Index of(Index key) const { return window == 0 || key < sinks ? key : sinks + key % window; }
};

Dsf unrolled(const Head& head) {
  const Index V = head.from.size("V");
  const Slots slots(head);
  Dsf system = head.from.blank(head.T, V, slots.size());
  for (Index key = 0; key < head.before; ++key)
    for (Index c = 0; c < V; ++c)
      system.initial[c * slots.size() + slots.of(key)] = head.kept(key, head.before - 1) * head.v[key][c];
  for (Index t = 0; t < head.T; ++t) {
    may_stop();
    DsfToken& token = system.token(t, 0);
    std::fill(token.decay.begin(), token.decay.end(), std::exp(head.forget[t + head.before]));
    const Index own = slots.of(t + head.before);
    // The ring's oldest key makes way.
    if (slots.window > 0 && own >= slots.sinks) token.decay[own] = 0;
    token.B[own] = 1;
    for (Index key = 0; key < head.keys; ++key)
      if (head.sees(t, key)) token.C[slots.of(key)] = head.weight(t, key);
  }
  return system;
}

Dsf recurrence(const Head& head) {
  require(head.window == 0, "dsf", "expected no window with a Taylor order, got ", head.window);
  require(!head.from.given("bias"), "dsf", "expected no bias with a Taylor order");
  require(std::isinf(head.clamp), "dsf", "expected no clamp with a Taylor order, got ", head.clamp);
  const Index V = head.from.size("V");
  const double root = std::sqrt(std::abs(head.from.scale())), sign = head.from.scale() < 0 ? -1 : 1;
  const auto features = [&](Vector x, double factor) {
    for (double& e : x) e *= factor;
    return monomials(x, *head.order);
  };
  const Index n = Index(features(Vector(std::size_t(head.from.size("K")), 0.0), root).size());
  Dsf system = head.from.blank(head.T, V, n);
  for (Index key = 0; key < head.before; ++key) {
    const Vector k = features(head.k[key], root);
    for (Index i = 0; i < n * V; ++i) system.initial[i] += head.kept(key, head.before - 1) * k[i % n] * head.v[key][i / n];
  }
  for (Index t = 0; t < head.T; ++t) {
    DsfToken& token = system.token(t, 0);
    const Vector k = features(head.k[t + head.before], root), q = features(head.q[t], sign * root);
    std::fill(token.decay.begin(), token.decay.end(), std::exp(head.forget[t + head.before]));
    std::copy(k.begin(), k.end(), token.B.begin());
    std::copy(q.begin(), q.end(), token.C.begin());
  }
  return system;
}

}  // namespace

Dsf BoundAttention::system(const DsfSource& from) const {
  const Head head(from);
  require(head.before >= 0, "dsf", "expected at least as many keys as queries, got ", from.size("S"), " and ", from.size("T"));
  require(!from.options.order || *from.options.order == *head.order, "dsf", "expected order ", *head.order,
          " as the kernel has, got ", *from.options.order);
  Dsf system = from.options.order ? recurrence(head) : unrolled(head);
  Vector etas;
  for (Index t = 0; t < head.T; ++t) {
    may_stop();
    etas.push_back(eta(head, t));
    for (Complex& x : system.token(t, 0).C) x *= from.number("gate", t, 1);
  }
  normalise(system, etas, from);
  system.centred = from.text("normaliser", "sum") == "layer";
  return system;
}

}  // namespace isomer
