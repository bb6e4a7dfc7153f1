#include "isomer/laws/scan/scan_reference.h"

#include <cmath>
#include <complex>
#include <vector>

#include "isomer/base/watch.h"
#include "isomer/laws/layout.h"

namespace isomer::scan_detail {

namespace {

using Complex = std::complex<double>;

constexpr const char* kOp = "scan";

template <class View, class... At>
double number(const View& x, At... at) {
  return x.present() ? double(x(at...)) : 0.0;
}
template <class View, class... At>
void put(const View& to, double value, At... at) {
  using T = std::remove_reference_t<decltype(to(at...))>;
  if (to.present()) to(at...) = T(value);
}

// e^{log_decay + i·angle}; exactly 0 for a log_decay of −inf.
template <class T>
Complex decay(const ScanInputs<T>& in, Index b, Index t, Index i) {
  return std::polar(std::exp(double(in.log_decay(b, t, i))), number(in.angle, b, t, i));
}

// a·b by its definition: std::complex repairs infinities in a way of its own.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

template <class T>
void reference(const ScanInputs<T>& in, const ScanOutputs<T>& out) {
  const auto [B, L, N] = in.x.shape;
  const auto all = sequences(kOp, B, L, in.offsets);
  for (Index n = 0; n < Index(all.size()); ++n)
    for (Index i = 0; i < N; ++i) {
      may_stop();
      const Sequence s = all[n];
      Complex h{number(in.initial.state, n, i), number(in.initial.imag, n, i)};
      for (Index t = s.first; t < s.first + s.length; ++t) {
        h = product(decay(in, s.batch, t, i), h) + Complex{double(in.x(s.batch, t, i)), number(in.x_imag, s.batch, t, i)};
        put(out.h, h.real(), s.batch, t, i);
        put(out.h_imag, h.imag(), s.batch, t, i);
      }
      put(out.final_states.state, h.real(), n, i);
      put(out.final_states.imag, h.imag(), n, i);
    }
}

template <class T>
void reference_vjp(const ScanInputs<T>& in, const ScanCotangents<T>& given, const ScanGradients<T>& grad) {
  const auto [B, L, N] = in.x.shape;
  const auto all = sequences(kOp, B, L, in.offsets);
  for (Index n = 0; n < Index(all.size()); ++n)
    for (Index i = 0; i < N; ++i) {
      may_stop();
      const Sequence s = all[n];
      std::vector<Complex> h{{number(in.initial.state, n, i), number(in.initial.imag, n, i)}};  // h[k]: before token k
      for (Index t = s.first; t < s.first + s.length; ++t)
        h.push_back(product(decay(in, s.batch, t, i), h.back()) +
                    Complex{double(in.x(s.batch, t, i)), number(in.x_imag, s.batch, t, i)});
      Complex g{number(given.final_states.state, n, i), number(given.final_states.imag, n, i)};
      for (Index k = s.length; k-- > 0;) {
        const Index t = s.first + k;
        const Complex lambda = decay(in, s.batch, t, i), kept = product(lambda, h[k]);
        g += Complex{number(given.h, s.batch, t, i), number(given.h_imag, s.batch, t, i)};
        put(grad.x, g.real(), s.batch, t, i);
        put(grad.x_imag, g.imag(), s.batch, t, i);
        // h = λ h' + x: λ h' grows by itself with log_decay and by i times itself with angle.
        put(grad.log_decay, g.real() * kept.real() + g.imag() * kept.imag(), s.batch, t, i);
        put(grad.angle, g.imag() * kept.real() - g.real() * kept.imag(), s.batch, t, i);
        g = product(std::conj(lambda), g);
      }
      put(grad.initial.state, g.real(), n, i);
      put(grad.initial.imag, g.imag(), n, i);
    }
}

template <class T>
void reference(const ScanS6Inputs<T>& in, const ScanS6Outputs<T>& out) {
  const auto [B, L, C] = in.x.shape;
  const Index N = in.a.shape[1];
  const auto all = sequences(kOp, B, L, in.offsets);
  for (Index n = 0; n < Index(all.size()); ++n)
    for (Index i = 0; i < C; ++i) {
      may_stop();
      const Sequence s = all[n];
      std::vector<double> h(N);
      for (Index j = 0; j < N; ++j) h[j] = number(in.initial_state, n, i, j);
      for (Index t = s.first; t < s.first + s.length; ++t) {
        const double x = in.x(s.batch, t, i), step = in.step(s.batch, t, i);
        double o = number(in.d, i) * x;
        for (Index j = 0; j < N; ++j) {
          h[j] = std::exp(step * in.a(i, j)) * h[j] + step * in.b(s.batch, t, j) * x;
          o += in.c(s.batch, t, j) * h[j];
        }
        put(out.o, o, s.batch, t, i);
      }
      for (Index j = 0; j < N; ++j) put(out.final_state, h[j], n, i, j);
    }
}

namespace {

// Gradients that are summed over tokens or channels.
struct Sums {
  std::vector<double> a, b, c, d;
};

// One channel of a sequence. h: [length + 1, N], the states before every token and after the last.
template <class T>
void channel_vjp(const ScanS6Inputs<T>& in, const ScanS6Cotangents<T>& given, const ScanS6Gradients<T>& grad, const Sequence& s,
                 Index i, const std::vector<double>& h, std::vector<double>& g, Sums& sums) {
  const Index N = in.a.shape[1], L = in.x.shape[1];
  for (Index k = s.length; k-- > 0;) {
    const Index t = s.first + k, row = (s.batch * L + t) * N;
    const double x = in.x(s.batch, t, i), step = in.step(s.batch, t, i), y = number(given.o, s.batch, t, i);
    double grad_x = number(in.d, i) * y, grad_step = 0;
    sums.d[i] += y * x;
    for (Index j = 0; j < N; ++j) {
      const double a = in.a(i, j), b = in.b(s.batch, t, j), keep = std::exp(step * a), kept = keep * h[k * N + j];
      sums.c[row + j] += y * h[(k + 1) * N + j];
      g[j] += y * in.c(s.batch, t, j);
      sums.b[row + j] += g[j] * step * x;
      sums.a[i * N + j] += g[j] * step * kept;
      grad_x += g[j] * step * b;
      grad_step += g[j] * (a * kept + b * x);
      g[j] *= keep;
    }
    put(grad.x, grad_x, s.batch, t, i);
    put(grad.step, grad_step, s.batch, t, i);
  }
}

}  // namespace

template <class T>
void reference_vjp(const ScanS6Inputs<T>& in, const ScanS6Cotangents<T>& given, const ScanS6Gradients<T>& grad) {
  const auto [B, L, C] = in.x.shape;
  const Index N = in.a.shape[1];
  const auto all = sequences(kOp, B, L, in.offsets);
  Sums sums{std::vector<double>(C * N), std::vector<double>(B * L * N), std::vector<double>(B * L * N), std::vector<double>(C)};
  for (Index n = 0; n < Index(all.size()); ++n)
    for (Index i = 0; i < C; ++i) {
      may_stop();
      const Sequence s = all[n];
      std::vector<double> h((s.length + 1) * N), g(N);
      for (Index j = 0; j < N; ++j) {
        h[j] = number(in.initial_state, n, i, j);
        g[j] = number(given.final_state, n, i, j);
      }
      for (Index k = 0; k < s.length; ++k) {
        const Index t = s.first + k;
        const double x = in.x(s.batch, t, i), step = in.step(s.batch, t, i);
        for (Index j = 0; j < N; ++j)
          h[(k + 1) * N + j] = std::exp(step * in.a(i, j)) * h[k * N + j] + step * in.b(s.batch, t, j) * x;
      }
      channel_vjp(in, given, grad, s, i, h, g, sums);
      for (Index j = 0; j < N; ++j) put(grad.initial_state, g[j], n, i, j);
    }
  for (Index i = 0; i < C; ++i) {
    put(grad.d, sums.d[i], i);
    for (Index j = 0; j < N; ++j) put(grad.a, sums.a[i * N + j], i, j);
  }
  for (Index b = 0; b < B; ++b)
    for (Index t = 0; t < L; ++t)
      for (Index j = 0; j < N; ++j) {
        put(grad.b, sums.b[(b * L + t) * N + j], b, t, j);
        put(grad.c, sums.c[(b * L + t) * N + j], b, t, j);
      }
}

template void reference(const ScanInputs<float>&, const ScanOutputs<float>&);
template void reference(const ScanInputs<double>&, const ScanOutputs<double>&);
template void reference(const ScanS6Inputs<float>&, const ScanS6Outputs<float>&);
template void reference(const ScanS6Inputs<double>&, const ScanS6Outputs<double>&);
template void reference_vjp(const ScanInputs<float>&, const ScanCotangents<float>&, const ScanGradients<float>&);
template void reference_vjp(const ScanInputs<double>&, const ScanCotangents<double>&, const ScanGradients<double>&);
template void reference_vjp(const ScanS6Inputs<float>&, const ScanS6Cotangents<float>&, const ScanS6Gradients<float>&);
template void reference_vjp(const ScanS6Inputs<double>&, const ScanS6Cotangents<double>&, const ScanS6Gradients<double>&);

}  // namespace isomer::scan_detail
