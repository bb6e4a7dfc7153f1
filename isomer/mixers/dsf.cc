#include "isomer/mixers/dsf.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/watch.h"

namespace isomer {

namespace {

/// h ← Λ h.
void advance(const DsfToken& token, Complex* h) {
  Complex dot = 0;
  for (std::size_t i = 0; i < token.right.size(); ++i) dot += token.right[i] * h[i];
  for (std::size_t i = 0; i < token.decay.size(); ++i) h[i] *= token.decay[i];
  for (std::size_t i = 0; i < token.left.size(); ++i) h[i] += token.left[i] * dot;
}

void write(const DsfToken& token, Complex u, Complex* h) {
  for (std::size_t i = 0; i < token.B.size(); ++i) h[i] += token.B[i] * u;
}

Complex read_out(const DsfToken& token, const Complex* h) {
  Complex y = 0;
  for (std::size_t i = 0; i < token.C.size(); ++i) y += token.C[i] * h[i];
  return y;
}

void centre(Signal& y) {
  for (Index t = 0; t < y.T; ++t) {
    Complex mean = 0;
    for (Index c = 0; c < y.channels; ++c) mean += y(t, c) / double(y.channels);
    for (Index c = 0; c < y.channels; ++c) y(t, c) -= mean;
  }
}

/// The eigenvalues of Λ.
std::vector<Complex> spectrum(const DsfToken& token) {
  const std::vector<Complex>& decay = token.decay;
  const Index n = Index(decay.size());
  if (token.left.empty() || n == 0) return decay;
  if (std::all_of(decay.begin(), decay.end(), [&](Complex x) { return x == decay[0]; })) {
    // a I + l rᵀ leaves what is orthogonal to r as it is but for a, and maps l to (a + r·l) l.
    std::vector<Complex> values = decay;
    for (Index i = 0; i < n; ++i) values[0] += token.left[i] * token.right[i];
    return values;
  }
  std::vector<Complex> matrix(std::size_t(n * n));
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) matrix[i * n + j] = token.left[i] * token.right[j] + (i == j ? decay[i] : 0.0);
  return eigenvalues(std::move(matrix), n);
}

}  // namespace

Signal run(const Dsf& system, const Signal& u) {
  require(u.T == system.T && u.channels == system.channels, "dsf", "expected u of [", system.T, ", ", system.channels, "], got [",
          u.T, ", ", u.channels, "]");
  Signal y{system.T, system.channels};
  std::vector<Complex> state = system.initial;
  for (Index t = 0; t < system.T; ++t)
    for (Index c = 0; c < system.channels; ++c) {
      const DsfToken& token = system.token(t, system.group_of_channel(c));
      Complex* h = state.data() + c * system.features;
      advance(token, h);
      write(token, u(t, c), h);
      y(t, c) = read_out(token, h) + token.D * u(t, c);
    }
  if (system.centred) centre(y);
  return y;
}

DsfMap materialise(const Dsf& system) {
  DsfMap map{system.T, system.groups};
  std::vector<Complex> h(std::size_t(system.features));
  for (Index g = 0; g < system.groups; ++g)
    for (Index s = 0; s < system.T; ++s) {
      may_stop();
      std::fill(h.begin(), h.end(), Complex(0));
      write(system.token(s, g), 1, h.data());
      map(g, s, s) = read_out(system.token(s, g), h.data()) + system.token(s, g).D;
      for (Index t = s + 1; t < system.T; ++t) {
        advance(system.token(t, g), h.data());
        map(g, t, s) = read_out(system.token(t, g), h.data());
      }
    }
  return map;
}

Signal apply_map(const Dsf& system, const DsfMap& map, const Signal& u) {
  Signal y = run(system, Signal{system.T, system.channels});
  for (Index t = 0; t < system.T; ++t)
    for (Index c = 0; c < system.channels; ++c)
      for (Index s = 0; s < system.T; ++s) y(t, c) += map(system.group_of_channel(c), t, s) * u(s, c);
  if (system.centred) centre(y);
  return y;
}

Index state_dimension(const Dsf& system) { return system.features * system.channels; }

std::vector<Complex> eigenvalues_at(const Dsf& system, Index t) {
  std::vector<Complex> all;
  for (Index g = 0; g < system.groups; ++g) {
    const std::vector<Complex> values = spectrum(system.token(t, g));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<std::vector<Complex>> eigenvalues(const Dsf& system) {
  std::vector<std::vector<Complex>> all;
  for (Index t = 0; t < system.T; ++t) all.push_back(eigenvalues_at(system, t));
  return all;
}

}  // namespace isomer
