// scan as a dynamical system.
#include <algorithm>

#include "isomer/laws/dsf.h"
#include "isomer/laws/scan/scan_law.h"

namespace isomer {

namespace {
using namespace dsf_detail;

Dsf realise_s6(const DsfSource& from) {
  const Index C = from.size("C"), N = from.size("N");
  Dsf system = from.blank(from.sequence.length, C, N, C);
  const Vector state = from.state("initial_state", C * N, DsfSource::Heads::none);
  std::copy(state.begin(), state.end(), system.initial.begin());
  const double* rates = from.tensor("a").data<double>();
  for (Index t = 0; t < system.T; ++t) {
    const Vector step = from.plain_row("step", t), b = from.plain_row("b", t), c = from.plain_row("c", t);
    for (Index g = 0; g < C; ++g) {
      DsfToken& token = system.token(t, g);
      if (from.given("d")) token.D = from.tensor("d").data<double>()[g];
      for (Index i = 0; i < N; ++i) {
        token.decay[i] = std::exp(step[g] * rates[g * N + i]);
        token.B[i] = step[g] * b[i];
        token.C[i] = c[i];
      }
    }
  }
  return system;
}
}  // namespace

Dsf BoundScan::system(const DsfSource& from) const {
  if (from.given("step")) return realise_s6(from);
  const Index N = from.size("N");
  Dsf system = from.blank(from.sequence.length, N, 1, N);
  const Vector real = from.state("initial_state", N, DsfSource::Heads::none);
  const Vector imag = from.state("initial_imag", N, DsfSource::Heads::none);
  for (Index i = 0; i < N; ++i) system.initial[i] = {real[i], imag[i]};
  for (Index t = 0; t < system.T; ++t) {
    const Vector decay = from.plain_row("log_decay", t);
    const Vector angle = from.given("angle") ? from.plain_row("angle", t) : Vector(std::size_t(N), 0.0);
    for (Index i = 0; i < N; ++i) {
      DsfToken& token = system.token(t, i);
      token.decay[0] = std::polar(std::exp(decay[i]), angle[i]);
      token.B[0] = token.C[0] = 1;
    }
  }
  return system;
}

}  // namespace isomer
