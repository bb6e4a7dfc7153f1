#include "isomer/laws/delta/delta_reference.h"

#include <cmath>

#include "isomer/base/watch.h"
#include "isomer/laws/reference_heads.h"

namespace isomer::delta_detail {

namespace {

using namespace reference_heads;

constexpr const char* kOp = "delta";

// The tokens of one head of one sequence, or their gradients, in double.
struct Tokens {
  Vector q, k, a, b, decay;  // [T,K]; decay is the factor itself, its gradient that of the logarithm
  Vector v, beta;            // [T,V] [T]

  Tokens(Index T, Index K, Index V) : q(T * K), k(T * K), a(T * K), b(T * K), decay(T * K, 1.0), v(T * V), beta(T) {}
};

struct Head {
  Index T, K, V;
  bool low_rank;
  double scale;
  Tokens x;

  // What is written beside k (delta) or b (low rank) at token t.
  [[nodiscard]] Vector update(Index t, const Vector& state) const {
    Vector u(V, 0.0);
    for (Index i = 0; i < K; ++i)
      for (Index c = 0; c < V; ++c)
        u[c] += low_rank ? x.a[t * K + i] * state[i * V + c] : x.k[t * K + i] * x.decay[t * K + i] * state[i * V + c];
    for (Index c = 0; c < V && !low_rank; ++c) u[c] = x.beta[t] * (x.v[t * V + c] - u[c]);
    return u;
  }
  void write(Index t, Vector& state) const {
    const Vector u = update(t, state);
    for (Index i = 0; i < K; ++i)
      for (Index c = 0; c < V; ++c) {
        double& s = state[i * V + c];
        s = x.decay[t * K + i] * s + (low_rank ? x.b[t * K + i] * u[c] + x.k[t * K + i] * x.v[t * V + c] : x.k[t * K + i] * u[c]);
      }
  }
  [[nodiscard]] double read(Index t, const Vector& state, Index c) const {
    double o = 0;
    for (Index i = 0; i < K; ++i) o += x.q[t * K + i] * state[i * V + c];
    return scale * o;
  }

  void read_vjp(Index t, const Vector& state, const double* grad_o, Vector& back, Tokens& grad) const {
    for (Index i = 0; i < K; ++i)
      for (Index c = 0; c < V; ++c) {
        grad.q[t * K + i] += scale * state[i * V + c] * grad_o[c];
        back[i * V + c] += scale * x.q[t * K + i] * grad_o[c];
      }
  }
  // Turns the gradient of the state after token t into that before.
  void write_vjp(Index t, const Vector& before, Vector& back, Tokens& grad) const {
    const Vector u = update(t, before);
    const double *k = &x.k[t * K], *v = &x.v[t * V], *decay = &x.decay[t * K], *writer = low_rank ? &x.b[t * K] : k;
    Vector du(V, 0.0);
    for (Index i = 0; i < K; ++i)
      for (Index c = 0; c < V; ++c) {
        const double d = back[i * V + c];
        du[c] += d * writer[i];
        (low_rank ? grad.b : grad.k)[t * K + i] += d * u[c];
        if (!low_rank) continue;
        grad.k[t * K + i] += d * v[c];
        grad.v[t * V + c] += d * k[i];
      }
    const double beta = x.beta[t];
    for (Index c = 0; c < V && !low_rank; ++c) {
      double error = v[c];
      for (Index i = 0; i < K; ++i) error -= k[i] * decay[i] * before[i * V + c];
      grad.beta[t] += du[c] * error;
      grad.v[t * V + c] += beta * du[c];
    }
    for (Index i = 0; i < K; ++i) {
      grad.decay[t * K + i] = 0;
      for (Index c = 0; c < V; ++c) {
        const double kept = decay[i] * before[i * V + c];
        double& d = back[i * V + c];
        if (!low_rank) {
          grad.k[t * K + i] -= beta * du[c] * kept;
          d -= beta * du[c] * k[i];
        }
        grad.decay[t * K + i] += d * kept;
        d *= decay[i];
        if (!low_rank) continue;
        grad.a[t * K + i] += before[i * V + c] * du[c];
        d += x.a[t * K + i] * du[c];
      }
    }
  }
};

// x / √(Σx² + eps) of every row.
Vector normalised(const Vector& x, Index K) {
  Vector y = x;
  for (std::size_t row = 0; row < x.size(); row += std::size_t(K)) {
    double sum = kNormEps;
    for (Index i = 0; i < K; ++i) sum += x[row + i] * x[row + i];
    for (Index i = 0; i < K; ++i) y[row + i] = x[row + i] / std::sqrt(sum);
  }
  return y;
}
void normalise_vjp(const Vector& x, Index K, Vector& grad) {
  for (std::size_t row = 0; row < x.size(); row += std::size_t(K)) {
    double sum = kNormEps, dot = 0;
    for (Index i = 0; i < K; ++i) sum += x[row + i] * x[row + i];
    for (Index i = 0; i < K; ++i) dot += x[row + i] * grad[row + i];
    for (Index i = 0; i < K; ++i) grad[row + i] = (grad[row + i] - x[row + i] * dot / sum) / std::sqrt(sum);
  }
}

template <class T>
Head head_of(const DeltaInputs<T>& in, const DeltaOptions& options, const Sequence& seq, Index h, Index H) {
  const Index K = in.q.shape[3], V = in.v.shape[3], L = seq.length;
  Head head{L, K, V, in.a.present(), options.scale.value_or(1 / std::sqrt(double(K))), Tokens(L, K, V)};
  head.x.q = rows_of(in.q, seq, h, H);
  head.x.k = rows_of(in.k, seq, h, H);
  head.x.v = rows_of(in.v, seq, h, H);
  head.x.a = rows_of(in.a, seq, h, H);
  head.x.b = rows_of(in.b, seq, h, H);
  for (Index t = 0; t < L; ++t) {
    const Index s = seq.first + t;
    if (in.beta.present()) head.x.beta[t] = in.beta(seq.batch, s, h);
    for (Index i = 0; i < K; ++i) {
      if (in.log_decay.present()) head.x.decay[t * K + i] = std::exp(double(in.log_decay(seq.batch, s, h)));
      if (in.key_log_decay.present()) head.x.decay[t * K + i] = std::exp(double(in.key_log_decay(seq.batch, s, h, i)));
    }
  }
  if (!options.l2norm) return head;
  head.x.q = normalised(head.x.q, K);
  head.x.k = normalised(head.x.k, K);
  return head;
}

template <class T>
void put_gates(const Head& head, const Tokens& grad, const Sequence& seq, Index h, const DeltaGradients<T>& to) {
  for (Index t = 0; t < head.T; ++t) {
    const Index s = seq.first + t;
    if (to.beta.present()) to.beta(seq.batch, s, h) = T(grad.beta[t]);
    double all = 0;
    for (Index i = 0; i < head.K; ++i) {
      const Index at = t * head.K + i;
      all += grad.decay[at];
      if (to.key_log_decay.present()) to.key_log_decay(seq.batch, s, h, i) = T(grad.decay[at]);
      if (to.a.present()) to.a(seq.batch, s, h, i) = T(grad.a[at]);
      if (to.b.present()) to.b(seq.batch, s, h, i) = T(grad.b[at]);
    }
    if (to.log_decay.present()) to.log_decay(seq.batch, s, h) = T(all);
  }
}

}  // namespace

template <class T>
void reference(const DeltaInputs<T>& in, const DeltaOptions& options, const DeltaOutputs<T>& out) {
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    const Head head = head_of(in, options, seq, h, H);
    Vector state = state_of(in.initial_state, n, h, head.K, head.V);
    for (Index t = 0; t < head.T; ++t) {
      may_stop();
      head.write(t, state);
      for (Index c = 0; c < head.V; ++c) out.o(seq.batch, seq.first + t, h, c) = T(head.read(t, state, c));
    }
    put_state(state, out.final_state, n, h, head.V);
  });
}

template <class T>
void reference_vjp(const DeltaInputs<T>& in, const DeltaOptions& options, const DeltaCotangents<T>& given,
                   const DeltaGradients<T>& grad) {
  GroupedGradient<T> q(in.q), k(in.k), v(in.v);
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    const Head head = head_of(in, options, seq, h, H);
    const Index L = head.T, K = head.K, V = head.V;
    std::vector<Vector> states{state_of(in.initial_state, n, h, K, V)};  // after 0 … T tokens
    for (Index t = 0; t < L; ++t) head.write(t, states.emplace_back(states.back()));
    Vector back = state_of(given.final_state, n, h, K, V);
    const Vector grad_o = output_gradient(given.o, seq, h, H, V);
    Tokens sums(L, K, V);
    for (Index t = L; t-- > 0;) {
      may_stop();
      head.read_vjp(t, states[t + 1], &grad_o[t * V], back, sums);
      head.write_vjp(t, states[t], back, sums);
    }
    put_state(back, grad.initial_state, n, h, V);
    put_gates(head, sums, seq, h, grad);
    if (options.l2norm) {
      normalise_vjp(rows_of(in.q, seq, h, H), K, sums.q);
      normalise_vjp(rows_of(in.k, seq, h, H), K, sums.k);
    }
    q.add(sums.q, seq, h, H);
    k.add(sums.k, seq, h, H);
    v.add(sums.v, seq, h, H);
  });
  q.put(grad.q);
  k.put(grad.k);
  v.put(grad.v);
}

template void reference(const DeltaInputs<float>&, const DeltaOptions&, const DeltaOutputs<float>&);
template void reference(const DeltaInputs<double>&, const DeltaOptions&, const DeltaOutputs<double>&);
template void reference_vjp(const DeltaInputs<float>&, const DeltaOptions&, const DeltaCotangents<float>&,
                            const DeltaGradients<float>&);
template void reference_vjp(const DeltaInputs<double>&, const DeltaOptions&, const DeltaCotangents<double>&,
                            const DeltaGradients<double>&);

}  // namespace isomer::delta_detail
