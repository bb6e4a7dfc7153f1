#include "isomer/mixers/dsf_state.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer {

namespace {

double square_sum(const std::vector<Complex>& all) {
  double sum = 0;
  for (const Complex& x : all) sum += std::norm(x);
  return sum;
}

/// The state, token by token.
class Walk {
 public:
  Walk(const Dsf& system, const Signal& u) : system_(system), u_(u), h_(system.initial) {
    require(u.T == system.T && u.channels == system.channels, "dsf", "expected u of [", system.T, ", ", system.channels,
            "], got [", u.T, ", ", u.channels, "]");
    h_.resize(std::size_t(system.channels * system.features));
  }
  [[nodiscard]] const std::vector<Complex>& state() const { return h_; }
  /// Λ_t h; the state stays as it was.
  [[nodiscard]] std::vector<Complex> kept(Index t) const {
    std::vector<Complex> next = h_;
    each(
        t,
        [&](const DsfToken& token, Index, Complex* row) {
          Complex along = 0;
          for (std::size_t f = 0; f < token.right.size(); ++f) along += token.right[f] * row[f];
          for (std::size_t f = 0; f < token.decay.size(); ++f) row[f] *= token.decay[f];
          for (std::size_t f = 0; f < token.left.size(); ++f) row[f] += token.left[f] * along;
        },
        next);
    return next;
  }
  [[nodiscard]] std::vector<Complex> written(Index t) const {
    std::vector<Complex> all(h_.size());
    each(
        t,
        [&](const DsfToken& token, Index c, Complex* row) {
          for (std::size_t f = 0; f < token.B.size(); ++f) row[f] = token.B[f] * u_(t, c);
        },
        all);
    return all;
  }
  void become(const std::vector<Complex>& kept, const std::vector<Complex>& written) {
    for (std::size_t i = 0; i < h_.size(); ++i) h_[i] = kept[i] + written[i];
  }

 private:
  void each(Index t, auto f, std::vector<Complex>& all) const {
    for (Index c = 0; c < system_.channels; ++c)
      f(system_.token(t, system_.group_of_channel(c)), c, all.data() + c * system_.features);
  }
  const Dsf& system_;
  const Signal& u_;
  std::vector<Complex> h_;
};

/// The largest singular value, squared: power iteration on the products of rows or of columns, whichever are fewer.
double largest_square(const std::vector<Complex>& h, Index rows, Index columns) {
  const bool wide = rows <= columns;
  const Index n = wide ? rows : columns, m = wide ? columns : rows;
  const auto at = [&](Index i, Index j) { return wide ? h[i * columns + j] : h[j * columns + i]; };
  std::vector<Complex> gram(std::size_t(n * n)), v(std::size_t(n), 1.0), next = v;
  for (Index a = 0; a < n; ++a)
    for (Index b = 0; b <= a; ++b) {
      Complex sum = 0;
      for (Index j = 0; j < m; ++j) sum += at(a, j) * std::conj(at(b, j));
      gram[a * n + b] = sum;
      gram[b * n + a] = std::conj(sum);
    }
  double square = 0;
  for (int i = 0; i < 30; ++i) {
    for (Index a = 0; a < n; ++a) {
      next[a] = 0;
      for (Index b = 0; b < n; ++b) next[a] += gram[a * n + b] * v[b];
    }
    square = std::sqrt(square_sum(next));
    if (square == 0) return 0;
    for (Index a = 0; a < n; ++a) v[a] = next[a] / square;
  }
  return square;
}

}  // namespace

StateCurve state_curve(const Dsf& system, const Signal& u) {
  Walk walk(system, u);
  StateCurve curve;
  for (Index t = 0; t < system.T; ++t) {
    const double before = std::sqrt(square_sum(walk.state()));
    const std::vector<Complex> kept = walk.kept(t), written = walk.written(t);
    walk.become(kept, written);
    const double sum = square_sum(walk.state()), largest = largest_square(walk.state(), system.channels, system.features);
    curve.norm.push_back(std::sqrt(sum));
    curve.rank.push_back(largest > 0 ? sum / largest : 0);
    curve.kept.push_back(before > 0 ? std::sqrt(square_sum(kept)) / before : 0);
    curve.written.push_back(std::sqrt(square_sum(written)));
  }
  return curve;
}

StateMoment state_moment(const Dsf& system, const Signal& u, Index t) {
  require(t >= 0 && t < system.T, "dsf", "expected a token below ", system.T, ", got ", t);
  Walk walk(system, u);
  for (Index s = 0; s < t; ++s) walk.become(walk.kept(s), walk.written(s));
  return {walk.kept(t), walk.written(t)};
}

}  // namespace isomer
