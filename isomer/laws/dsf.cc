#include "isomer/laws/dsf.h"

#include <algorithm>

namespace isomer {

namespace dsf_detail {
void start_from(Dsf& system, const Vector& state) {
  const Index K = Index(state.size()) / system.channels;
  for (Index c = 0; c < system.channels; ++c)
    for (Index i = 0; i < K; ++i) system.initial[c * system.features + i] = state[i * system.channels + c];
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace dsf_detail

using dsf_detail::Vector;

Vector DsfSource::row(std::string_view name, Index t) const {
  const auto x = tensor(name).view<const double, 4>();
  const Index g = group_of(place.head, size("H"), x.shape[2]);
  Vector values;
  for (Index i = 0; i < x.shape[3]; ++i) values.push_back(x(sequence.batch, sequence.first + t, g, i));
  return values;
}

double DsfSource::number(std::string_view name, Index t, double fallback) const {
  if (!given(name)) return fallback;
  const Tensor& x = tensor(name);
  if (x.shape().size() == 1) return x.data<double>()[place.head];
  return x.view<const double, 3>()(sequence.batch, sequence.first + t, place.head);
}

Vector DsfSource::plain_row(std::string_view name, Index t) const {
  const auto x = tensor(name).view<const double, 3>();
  Vector values;
  for (Index i = 0; i < x.shape[2]; ++i) values.push_back(x(sequence.batch, sequence.first + t, i));
  return values;
}

Vector DsfSource::state(std::string_view name, Index length, Heads heads) const {
  if (!given(name)) return Vector(std::size_t(length), 0.0);
  const Index index = heads == Heads::none ? place.sequence : place.sequence * size("H") + place.head;
  const double* first = tensor(name).data<double>() + index * length;
  return {first, first + length};
}

Dsf DsfSource::blank(Index T, Index channels, Index features, Index groups) const {
  Dsf system{.T = T, .channels = channels, .features = features, .groups = groups};
  const std::vector<Complex> zeros(std::size_t(features), Complex(0)), ones(std::size_t(features), Complex(1));
  system.tokens.assign(std::size_t(T * groups), {.decay = ones, .left = {}, .right = {}, .B = zeros, .C = zeros});
  system.initial.assign(std::size_t(channels * features), Complex(0));
  return system;
}

void normalise(Dsf& system, const Vector& eta, const DsfSource& from) {
  const bool carried = std::any_of(system.initial.begin(), system.initial.end(), [](Complex x) { return x != Complex(0); });
  for (Index t = 0; t < system.T; ++t)
    for (Index g = 0; g < system.groups; ++g) {
      DsfToken& token = system.token(t, g);
      if (from.options.eta == DsfOptions::Eta::read_out) {
        for (Complex& x : token.C) x /= eta[t];
        continue;
      }
      const double before = t > 0 ? eta[t - 1] : carried ? 1 : eta[t];
      for (Complex& x : token.decay) x *= before / eta[t];
      for (Complex& x : token.left) x *= before / eta[t];
      for (Complex& x : token.B) x /= eta[t];
    }
}

}  // namespace isomer
