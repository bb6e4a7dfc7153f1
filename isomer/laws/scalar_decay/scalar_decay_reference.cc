#include "isomer/laws/scalar_decay/scalar_decay_reference.h"

#include <cmath>

#include "isomer/base/watch.h"
#include "isomer/laws/reference_heads.h"

namespace isomer::scalar_decay_detail {

namespace {

using Normaliser = ScalarDecayOptions::Normaliser;
using namespace reference_heads;

constexpr const char* kOp = "scalar_decay";

// S, n (of `subtract`: Σk), Σv, the count and m after a token.
struct Memory {
  Vector state, norm, value_sum;
  double count = 0, max = 0;
};

// One head of one sequence, in double.
struct Head {
  Index T, K, V;
  Normaliser normaliser;
  bool global;
  double scale, eps;
  Vector q, k, v;       // [T,K] [T,K] [T,V]
  Vector decay, input;  // [T] logarithms

  // The factors of the old state and of the new token; moves m.
  [[nodiscard]] std::pair<double, double> gates(Index t, double& max) const {
    if (normaliser != Normaliser::max) return {std::exp(decay[t]), std::exp(input[t])};
    const double m = std::max(decay[t] + max, input[t]);
    const std::pair<double, double> factors{std::exp(decay[t] + max - m), std::exp(input[t] - m)};
    max = m;
    return factors;
  }

  void write(Index t, Memory& m) const {
    const auto [keep, add] = gates(t, m.max);
    for (Index a = 0; a < K; ++a) {
      for (Index c = 0; c < V; ++c) m.state[a * V + c] = keep * m.state[a * V + c] + add * k[t * K + a] * v[t * V + c];
      m.norm[a] = keep * m.norm[a] + add * k[t * K + a];
    }
    for (Index c = 0; c < V; ++c) m.value_sum[c] += v[t * V + c];
    m.count += 1;
  }

  [[nodiscard]] double dot_norm(Index t, const Memory& m) const {
    double sum = 0;
    for (Index a = 0; a < K; ++a) sum += scale * q[t * K + a] * m.norm[a];
    return sum;
  }
  // d of sum and max (which is in the scale of m).
  [[nodiscard]] double divisor(double den, const Memory& m) const {
    if (normaliser == Normaliser::sum) return den + eps;
    const double one = std::exp(-m.max);
    return std::max(std::abs(den), one) + eps * one;
  }

  void read(Index t, const Memory& m, double* o) const {
    const double den = dot_norm(t, m);
    for (Index c = 0; c < V; ++c) {
      double num = 0;
      for (Index a = 0; a < K; ++a) num += scale * q[t * K + a] * m.state[a * V + c];
      const double mean = m.value_sum[c] / m.count;
      o[c] = normaliser == Normaliser::none       ? num
             : normaliser == Normaliser::subtract ? mean + (num - den * mean) / m.count
                                                  : num / divisor(den, m);
    }
  }

  // The gradient of read(): into the memory's, and into q's.
  void read_vjp(Index t, const Memory& m, const double* grad_o, Memory& grad, double* grad_q) const {
    Vector y(grad_o, grad_o + V), value(V, 0.0);  // gradients of num and, for `subtract`, of Σv
    double delta = 0;                             // gradient of den
    const double den = dot_norm(t, m);
    if (normaliser == Normaliser::subtract) {
      for (Index c = 0; c < V; ++c) {
        y[c] = grad_o[c] / m.count;
        delta -= y[c] * m.value_sum[c] / m.count;
        value[c] = y[c] * (1 - den / m.count);
      }
    } else if (normaliser != Normaliser::none) {
      const double d = divisor(den, m);
      Vector o(V);
      read(t, m, o.data());
      const bool flat = normaliser == Normaliser::max && std::abs(den) <= std::exp(-m.max);
      const double sign = normaliser == Normaliser::max && den < 0 ? -1 : 1;
      for (Index c = 0; c < V; ++c) {
        y[c] = grad_o[c] / d;
        if (!flat) delta -= sign * y[c] * o[c];
      }
    }
    for (Index a = 0; a < K; ++a) {
      double sum = delta * m.norm[a];
      for (Index c = 0; c < V; ++c) {
        sum += m.state[a * V + c] * y[c];
        grad.state[a * V + c] += scale * q[t * K + a] * y[c];
      }
      grad_q[a] = scale * sum;
      grad.norm[a] += scale * q[t * K + a] * delta;
    }
    for (Index c = 0; c < V; ++c) grad.value_sum[c] += value[c];
  }

  // The gradient of write() from `before`: turns the gradient of the memory after into that before.
  struct TokenGradient {
    double *k, *v, decay, input;
  };
  void write_vjp(Index t, const Memory& before, Memory& grad, TokenGradient& out) const {
    double max = before.max;
    const auto [keep, add] = gates(t, max);
    out.decay = out.input = 0;
    for (Index c = 0; c < V; ++c) out.v[c] = grad.value_sum[c];
    for (Index a = 0; a < K; ++a) {
      double sum = grad.norm[a];
      out.decay += keep * grad.norm[a] * before.norm[a];
      grad.norm[a] *= keep;
      for (Index c = 0; c < V; ++c) {
        double& g = grad.state[a * V + c];
        sum += g * v[t * V + c];
        out.v[c] += add * g * k[t * K + a];
        out.decay += keep * g * before.state[a * V + c];
        g *= keep;
      }
      out.k[a] = add * sum;
      out.input += k[t * K + a] * add * sum;
    }
  }
};

template <class T>
Head head_of(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, const Sequence& seq, Index h, Index H) {
  const Index K = in.q.shape[3], V = in.v.shape[3], L = seq.length;
  Head head{L,
            K,
            V,
            options.normaliser,
            options.direction == ScalarDecayOptions::Direction::global,
            options.scale.value_or(1 / std::sqrt(double(K))),
            options.eps,
            rows_of(in.q, seq, h, H),
            rows_of(in.k, seq, h, H),
            rows_of(in.v, seq, h, H),
            Vector(L, 0.0),
            Vector(L, 0.0)};
  for (Index t = 0; t < L; ++t) {
    const Index s = seq.first + t;
    if (in.log_decay.present()) head.decay[t] = in.log_decay(seq.batch, s, h);
    if (in.log_input.present()) head.input[t] = in.log_input(seq.batch, s, h);
  }
  return head;
}

template <class T>
Memory memory_of(const ScalarDecayStates<const T>& from, Index n, Index h, Index K, Index V) {
  Memory m{state_of(from.state, n, h, K, V), Vector(K, 0.0), Vector(V, 0.0), 0, 0};
  for (Index a = 0; a < K && from.norm.present(); ++a) m.norm[a] = from.norm(n, h, a);
  for (Index c = 0; c < V && from.value_sum.present(); ++c) m.value_sum[c] = from.value_sum(n, h, c);
  if (from.count.present()) m.count = from.count(n);
  const bool nothing = !from.state.present() && !from.norm.present() && !from.max.present();
  m.max = from.max.present() ? double(from.max(n, h)) : nothing ? kNothing : 0.0;
  return m;
}

template <class T>
void put(const Memory& m, const ScalarDecayStates<T>& to, Index n, Index h, Index K, Index V) {
  put_state(m.state, to.state, n, h, V);
  for (Index a = 0; a < K && to.norm.present(); ++a) to.norm(n, h, a) = T(m.norm[a]);
  for (Index c = 0; c < V && to.value_sum.present(); ++c) to.value_sum(n, h, c) = T(m.value_sum[c]);
  if (to.max.present()) to.max(n, h) = T(m.max);
  if (to.count.present()) to.count(n) = T(m.count);
}

// Gradients of one head, in double; grouped heads add theirs up.
template <class T>
void head_vjp(const ScalarDecayInputs<T>& in, const ScalarDecayCotangents<T>& given, const Head& head, const Sequence& seq,
              Index n, Index h, Index H, std::array<GroupedGradient<T>, 3>& sums, const ScalarDecayGradients<T>& grad) {
  const Index L = head.T, K = head.K, V = head.V;
  std::vector<Memory> memory{memory_of(in.initial, n, h, K, V)};  // after 0 … T tokens
  for (Index t = 0; t < L; ++t) head.write(t, memory.emplace_back(memory.back()));
  Memory back = memory_of(given.final_states, n, h, K, V);
  const Vector grad_o = output_gradient(given.o, seq, h, H, V);
  Vector grad_q(L * K), grad_k(L * K), grad_v(L * V);
  for (Index t = 0; t < L && head.global; ++t) head.read_vjp(t, memory[L], &grad_o[t * V], back, &grad_q[t * K]);
  for (Index t = L; t-- > 0;) {
    may_stop();
    if (!head.global) head.read_vjp(t, memory[t + 1], &grad_o[t * V], back, &grad_q[t * K]);
    Head::TokenGradient token{&grad_k[t * K], &grad_v[t * V], 0, 0};
    head.write_vjp(t, memory[t], back, token);
    if (grad.log_decay.present()) grad.log_decay(seq.batch, seq.first + t, h) = T(token.decay);
    if (grad.log_input.present()) grad.log_input(seq.batch, seq.first + t, h) = T(token.input);
  }
  put(back, grad.initial, n, h, K, V);
  sums[0].add(grad_q, seq, h, H);
  sums[1].add(grad_k, seq, h, H);
  sums[2].add(grad_v, seq, h, H);
}

}  // namespace

template <class T>
void reference(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, const ScalarDecayOutputs<T>& out) {
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    const Head head = head_of(in, options, seq, h, H);
    Memory m = memory_of(in.initial, n, h, head.K, head.V);
    Vector o(head.V);
    const auto read = [&](Index t) {
      head.read(t, m, o.data());
      for (Index c = 0; c < head.V; ++c) out.o(seq.batch, seq.first + t, h, c) = T(o[c]);
    };
    for (Index t = 0; t < head.T; ++t) {
      may_stop();
      head.write(t, m);
      if (!head.global) read(t);
    }
    for (Index t = 0; t < head.T && head.global; ++t) read(t);
    // The count is one for all heads: the last head's write must not meet the next head's read of the same memory.
    ScalarDecayStates<T> to = out.final_states;
    if (h + 1 < H) to.count = {};
    put(m, to, n, h, head.K, head.V);
  });
}

template <class T>
void reference_vjp(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, const ScalarDecayCotangents<T>& given,
                   const ScalarDecayGradients<T>& grad) {
  std::array<GroupedGradient<T>, 3> sums{GroupedGradient<T>(in.q), GroupedGradient<T>(in.k), GroupedGradient<T>(in.v)};
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    ScalarDecayGradients<T> to = grad;
    to.initial.max = {};
    to.initial.count = {};
    head_vjp(in, given, head_of(in, options, seq, h, H), seq, n, h, H, sums, to);
  });
  sums[0].put(grad.q);
  sums[1].put(grad.k);
  sums[2].put(grad.v);
}

template void reference(const ScalarDecayInputs<float>&, const ScalarDecayOptions&, const ScalarDecayOutputs<float>&);
template void reference(const ScalarDecayInputs<double>&, const ScalarDecayOptions&, const ScalarDecayOutputs<double>&);
template void reference_vjp(const ScalarDecayInputs<float>&, const ScalarDecayOptions&, const ScalarDecayCotangents<float>&,
                            const ScalarDecayGradients<float>&);
template void reference_vjp(const ScalarDecayInputs<double>&, const ScalarDecayOptions&, const ScalarDecayCotangents<double>&,
                            const ScalarDecayGradients<double>&);

}  // namespace isomer::scalar_decay_detail
