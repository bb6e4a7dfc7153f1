// What is looked at of effective attention matrices: one group of channels at a time, in real numbers where they are real.
#include <algorithm>

#include "isomer/mixers/dsf.h"

namespace isomer {

namespace {

constexpr double kForgotten = 0.01;

Index sources_of(Index T) { return (T + 1) / 2; }

/// Sums over the sources of one group, from its |Φ| [T, T].
void add_horizon(const std::vector<double>& sizes, Index T, MemoryHorizon& horizon) {
  const Index sources = sources_of(T);
  // Row by row, as they stand in memory: the largest of each source, then the last token that still has its share of it.
  std::vector<double> peak(std::size_t(sources), 0.0), end(std::size_t(sources), 0.0);
  const auto each = [&](auto f) {
    for (Index t = 0; t < T; ++t)
      for (Index s = 0, n = std::min(sources, t + 1); s < n; ++s) f(t, s, sizes[t * T + s]);
  };
  each([&](Index, Index s, double size) { peak[s] = std::max(peak[s], size); });
  each([&](Index t, Index s, double size) { end[s] = size >= kForgotten * peak[s] ? double(t + 1) : end[s]; });
  for (Index s = 0; s < sources; ++s) {
    if (peak[s] == 0) continue;
    horizon.tokens += end[s] - double(s);
    horizon.unfinished += end[s] == double(T) ? 1 : 0;
  }
}

MemoryHorizon mean_of(const MemoryHorizon& sum, Index T, Index groups) {
  const double count = double(std::max<Index>(sources_of(T) * groups, 1));
  return {sum.tokens / count, sum.unfinished / count};
}

using Row = std::vector<Complex> DsfToken::*;
constexpr Row kRows[] = {&DsfToken::decay, &DsfToken::left, &DsfToken::right, &DsfToken::B, &DsfToken::C};

bool is_real(const DsfToken& token) {
  return token.D.imag() == 0 && std::ranges::all_of(kRows, [&](Row row) {
           return std::ranges::all_of(token.*row, [](const Complex& x) { return x.imag() == 0; });
         });
}

/// How the numbers of a group are read. One feature that decays is a product, and so are sizes.
enum class Reading { real, complex, sizes };

Reading reading_of(const Dsf& system, Index g) {
  bool diagonal = true, real = true;
  for (Index t = 0; t < system.T; ++t) {
    diagonal = diagonal && system.token(t, g).left.empty();
    real = real && is_real(system.token(t, g));
  }
  if (system.groups > 1 && system.features == 1 && diagonal) return Reading::sizes;
  return real ? Reading::real : Reading::complex;
}

double product(double a, double b) { return a * b; }
/// That of std::complex asks for infinities in between, which keeps it out of vectors.
Complex product(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// One group: Φ of its tokens in numbers N.
template <class N>
class GroupMap {
 public:
  GroupMap(const Dsf& system, Index g, Reading reading) : T_(system.T), features_(system.features) {
    for (Index t = 0; t < T_; ++t) {
      const DsfToken& token = system.token(t, g);
      for (std::size_t i = 0; i < std::size(kRows); ++i)
        for (const Complex& x : token.*kRows[i]) rows_[i].push_back(number(x, reading));
      low_rank_.push_back(!token.left.empty());
      // At its own token a write is read at once, and beside the state.
      Complex own = token.D;
      for (Index f = 0; f < features_; ++f) own += token.C[f] * token.B[f];
      own_.push_back(number(own, reading));
      // Tokens without a part of rank one have no rows for it.
      if (token.left.empty())
        for (const std::size_t i : {1, 2}) rows_[i].resize(rows_[0].size());
    }
  }

  /// Calls take(t, Φ(t, ·)) with the weights on tokens 0 … t. The writes of all tokens go on side by side.
  void each(auto take) const {
    std::vector<N> h(std::size_t(features_ * T_), N(0)), along(std::size_t(T_), N(0)), y = along;
    for (Index t = 0; t < T_; ++t) {
      std::fill_n(y.begin(), t, N(0));
      if (low_rank_[t]) couple(t, h.data(), along.data());
      for (Index f = 0; f < features_; ++f) {
        const N decay = at(0, t, f), left = at(1, t, f), C = at(4, t, f);
        N* const now = h.data() + f * T_;
        if (low_rank_[t])
          for (Index s = 0; s < t; ++s) y[s] += product(C, now[s] = product(decay, now[s]) + product(left, along[s]));
        else
          for (Index s = 0; s < t; ++s) y[s] += product(C, now[s] = product(decay, now[s]));
        now[t] = at(3, t, f);
      }
      y[t] = own_[t];
      take(t, y.data());
    }
  }

 private:
  static N number(const Complex& x, Reading reading) {
    if constexpr (std::is_same_v<N, Complex>)
      return x;
    else
      return reading == Reading::sizes ? std::abs(x) : x.real();
  }
  [[nodiscard]] N at(std::size_t i, Index t, Index f) const { return rows_[i][std::size_t(t * features_ + f)]; }
  /// What the part of rank one reads of every token before t.
  void couple(Index t, const N* h, N* along) const {
    std::fill_n(along, t, N(0));
    for (Index f = 0; f < features_; ++f)
      for (Index s = 0; s < t; ++s) along[s] += product(at(2, t, f), h[f * T_ + s]);
  }

  Index T_, features_;
  std::vector<N> rows_[std::size(kRows)], own_;  // [T, features]
  std::vector<char> low_rank_;
};

}  // namespace

MemoryHorizon memory_horizon(const DsfMap& map) {
  MemoryHorizon horizon;
  std::vector<double> sizes(std::size_t(map.T * map.T), 0.0);
  for (Index g = 0; g < map.groups; ++g) {
    for (Index t = 0; t < map.T; ++t)
      for (Index s = 0; s <= t; ++s) sizes[t * map.T + s] = std::abs(map(g, t, s));
    add_horizon(sizes, map.T, horizon);
  }
  return mean_of(horizon, map.T, map.groups);
}

DsfWeights weights_of(const Dsf& system) {
  const Index T = system.T;
  DsfWeights all{.values = std::vector<double>(std::size_t(T * T), 0.0), .horizon = {}};
  std::vector<double> sizes = all.values;
  for (Index g = 0; g < system.groups; ++g) {
    const auto take = [&](Index t, const auto* weights) {
      double *const size = sizes.data() + t * T, *const sum = all.values.data() + t * T;
      for (Index s = 0; s <= t; ++s) size[s] = std::abs(weights[s]);
      for (Index s = 0; s <= t; ++s) sum[s] += system.groups > 1 ? size[s] : std::real(weights[s]);
    };
    const Reading reading = reading_of(system, g);
    if (reading == Reading::complex)
      GroupMap<Complex>(system, g, reading).each(take);
    else
      GroupMap<double>(system, g, reading).each(take);
    add_horizon(sizes, T, all.horizon);
  }
  for (double& weight : all.values) weight /= double(system.groups);
  all.horizon = mean_of(all.horizon, T, system.groups);
  return all;
}

}  // namespace isomer
