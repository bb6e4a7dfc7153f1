// Order-P attention as P + 1 linear recurrences on Kronecker powers of the keys (Mongaras & Larson 2025, section 3).
#include <vector>

#include "isomer/laws/attention/attention_problem.h"

namespace isomer {

namespace {

using Powers = std::vector<std::vector<double>>;

/// x^{⊗0} = [1], x^{⊗1} = x, …, x^{⊗order}
Powers kronecker_powers(const std::vector<double>& x, int order) {
  Powers powers{{1.0}};
  for (int n = 1; n <= order; ++n) {
    std::vector<double> next;
    for (double a : powers.back())
      for (double b : x) next.push_back(a * b);
    powers.push_back(std::move(next));
  }
  return powers;
}

template <class T>
std::vector<double> row(View<const T, 4> x, Index b, Index t, Index h, Index H, double factor) {
  std::vector<double> values;
  for (Index d = 0; d < x.shape[3]; ++d) values.push_back(factor * double(x(b, t, group_of(h, H, x.shape[2]), d)));
  return values;
}

/// H_n = Σ k^{⊗n} vᵀ and z_n = Σ k^{⊗n}, with o = Σ_n q^{⊗n}·H_n / n!.
struct KroneckerState {
  Index V;
  Powers sums, counts;

  KroneckerState(Index K, Index width, int order) : V(width) {
    std::size_t size = 1;
    for (int n = 0; n <= order; ++n, size *= std::size_t(K)) {
      sums.emplace_back(size * std::size_t(V), 0.0);
      counts.emplace_back(size, 0.0);
    }
  }
  void write(const Powers& k, const std::vector<double>& v) {
    for (std::size_t n = 0; n < k.size(); ++n)
      for (std::size_t i = 0; i < k[n].size(); ++i) {
        counts[n][i] += k[n][i];
        for (std::size_t d = 0; d < v.size(); ++d) sums[n][i * v.size() + d] += k[n][i] * v[d];
      }
  }
  /// Adds the weighted sum of values to x and returns the sum of weights.
  double read(const Powers& q, std::vector<double>& x) const {
    double total = 0, factorial = 1;
    for (std::size_t n = 0; n < q.size(); ++n) {
      if (n > 0) factorial *= double(n);
      for (std::size_t i = 0; i < q[n].size(); ++i) {
        total += q[n][i] / factorial * counts[n][i];
        for (std::size_t d = 0; d < x.size(); ++d) x[d] += q[n][i] / factorial * sums[n][i * x.size() + d];
      }
    }
    return total;
  }
};

}  // namespace

template <class T>
void attention_kronecker(const AttentionInputs<T>& in, const AttentionOptions& options, const AttentionOutputs<T>& out) {
  const auto p = attention_detail::validate<T>(in, options, Form::reference, out.o);
  // A clamped logit is no polynomial of q·k.
  require(p.taylor() && p.causal() && !p.clamps() && options.window == 0 && options.sinks == 0 && !in.log_forget.present(),
          "attention_kronecker", "expected causal kernel=taylor without clamp, window, sinks and log_forget");
  for (const Sequence& s : p.sequences)
    for (Index h = 0; h < p.H; ++h) {
      KroneckerState state(p.K, p.V, options.order);
      for (Index j = 0; j < p.keys(s); ++j) {
        state.write(kronecker_powers(row(in.k, s.batch, s.first + j, h, p.H, 1.0), options.order),
                    row(in.v, s.batch, s.first + j, h, p.H, 1.0));
        const Index i = j - p.first(), t = s.first + i;
        if (i < 0) continue;
        std::vector<double> x(std::size_t(p.V), 0.0), o(std::size_t(p.V), 0.0);
        const double total = state.read(kronecker_powers(row(in.q, s.batch, t, h, p.H, p.scale), options.order), x);
        const double gate = in.gate.present() ? double(in.gate(s.batch, t, h)) : 1.0;
        attention_detail::normalise<double>(p, x.data(), total, double(p.count(i, p.keys(s))), gate, o.data());
        for (Index d = 0; d < p.V; ++d) out.o(s.batch, t, h, d) = T(o[std::size_t(d)]);
      }
    }
}

template void attention_kronecker(const AttentionInputs<float>&, const AttentionOptions&, const AttentionOutputs<float>&);
template void attention_kronecker(const AttentionInputs<double>&, const AttentionOptions&, const AttentionOutputs<double>&);

}  // namespace isomer
