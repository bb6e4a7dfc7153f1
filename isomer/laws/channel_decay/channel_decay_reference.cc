#include "isomer/laws/channel_decay/channel_decay_reference.h"

#include <cmath>

#include "isomer/base/watch.h"
#include "isomer/laws/reference_heads.h"

namespace isomer::channel_decay_detail {

namespace {

using namespace reference_heads;

constexpr const char* kOp = "channel_decay";

// One head of one sequence, in double.
struct Head {
  Index T, K, V;
  bool before;  // outputs read the state before the token is written
  double scale;
  Vector q, k, v, decay;  // [T,K] [T,K] [T,V] [T,K] decay is the factor itself
  Vector bonus;           // [K]

  void write(Index t, Vector& state) const {
    for (Index a = 0; a < K; ++a)
      for (Index c = 0; c < V; ++c) {
        double& s = state[a * V + c];
        s = decay[t * K + a] * s + k[t * K + a] * v[t * V + c];
      }
  }

  // What output t sees of the state: that before the token with the bonus, or that after it.
  [[nodiscard]] double seen(Index t, Index a, Index c, const Vector& state) const {
    return state[a * V + c] + (before ? bonus[a] * k[t * K + a] * v[t * V + c] : 0.0);
  }
  void read(Index t, const Vector& state, double* o) const {
    for (Index c = 0; c < V; ++c) {
      double sum = 0;
      for (Index a = 0; a < K; ++a) sum += q[t * K + a] * seen(t, a, c, state);
      o[c] = scale * sum;
    }
  }
};

struct HeadGradient {
  Vector q, k, v, log_decay, bonus;  // [T,K] [T,K] [T,V] [T,K] [K]
};

// The gradient of read(): into that of the state, q and, through the bonus, k, v and the bonus.
void read_vjp(const Head& head, Index t, const Vector& state, const double* grad_o, Vector& grad_state, HeadGradient& grad) {
  const Index K = head.K, V = head.V;
  for (Index a = 0; a < K; ++a)
    for (Index c = 0; c < V; ++c) {
      const double y = head.scale * grad_o[c];
      grad.q[t * K + a] += head.seen(t, a, c, state) * y;
      const double seen = head.q[t * K + a] * y;
      grad_state[a * V + c] += seen;
      if (!head.before) continue;
      grad.k[t * K + a] += seen * head.bonus[a] * head.v[t * V + c];
      grad.v[t * V + c] += seen * head.bonus[a] * head.k[t * K + a];
      grad.bonus[a] += seen * head.k[t * K + a] * head.v[t * V + c];
    }
}

// The gradient of write() from the state `before`: turns the gradient of the state after into that before.
void write_vjp(const Head& head, Index t, const Vector& before, Vector& grad_state, HeadGradient& grad) {
  const Index K = head.K, V = head.V;
  for (Index a = 0; a < K; ++a)
    for (Index c = 0; c < V; ++c) {
      double& g = grad_state[a * V + c];
      grad.k[t * K + a] += g * head.v[t * V + c];
      grad.v[t * V + c] += g * head.k[t * K + a];
      g *= head.decay[t * K + a];
      grad.log_decay[t * K + a] += g * before[a * V + c];
    }
}

template <class T>
Head head_of(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, const Sequence& seq, Index h, Index H) {
  const Index K = in.q.shape[3], V = in.v.shape[3], L = seq.length;
  Head head{L,
            K,
            V,
            options.read == ChannelDecayOptions::Read::before,
            options.scale.value_or(1 / std::sqrt(double(K))),
            rows_of(in.q, seq, h, H),
            rows_of(in.k, seq, h, H),
            rows_of(in.v, seq, h, H),
            rows_of(in.log_decay, seq, h, H),
            Vector(K, 0.0)};
  for (double& x : head.decay) x = std::exp(x);
  for (Index a = 0; a < K && in.bonus.present(); ++a) head.bonus[a] = in.bonus(h, a);
  return head;
}

}  // namespace

template <class T>
void reference(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, const ChannelDecayOutputs<T>& out) {
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    const Head head = head_of(in, options, seq, h, H);
    Vector state = state_of(in.initial_state, n, h, head.K, head.V), o(head.V);
    for (Index t = 0; t < head.T; ++t) {
      may_stop();
      if (head.before) head.read(t, state, o.data());
      head.write(t, state);
      if (!head.before) head.read(t, state, o.data());
      for (Index c = 0; c < head.V; ++c) out.o(seq.batch, seq.first + t, h, c) = T(o[c]);
    }
    put_state(state, out.final_state, n, h, head.V);
  });
}

template <class T>
void reference_vjp(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, const ChannelDecayCotangents<T>& given,
                   const ChannelDecayGradients<T>& grad) {
  GroupedGradient<T> q(in.q), k(in.k), v(in.v), log_decay(in.log_decay);
  Vector sums_bonus(in.log_decay.shape[2] * in.q.shape[3], 0.0);
  each_head(kOp, in, [&](const Sequence& seq, Index n, Index h, Index H) {
    const Head head = head_of(in, options, seq, h, H);
    const Index L = head.T, K = head.K, V = head.V;
    std::vector<Vector> states{state_of(in.initial_state, n, h, K, V)};  // after 0 … T tokens
    for (Index t = 0; t < L; ++t) head.write(t, states.emplace_back(states.back()));
    Vector back = state_of(given.final_state, n, h, K, V);
    const Vector grad_o = output_gradient(given.o, seq, h, H, V);
    HeadGradient g{Vector(L * K, 0.0), Vector(L * K, 0.0), Vector(L * V, 0.0), Vector(L * K, 0.0), Vector(K, 0.0)};
    for (Index t = L; t-- > 0;) {
      may_stop();
      if (!head.before) read_vjp(head, t, states[t + 1], &grad_o[t * V], back, g);
      write_vjp(head, t, states[t], back, g);
      if (head.before) read_vjp(head, t, states[t], &grad_o[t * V], back, g);
    }
    put_state(back, grad.initial_state, n, h, V);
    q.add(g.q, seq, h, H);
    k.add(g.k, seq, h, H);
    v.add(g.v, seq, h, H);
    log_decay.add(g.log_decay, seq, h, H);
    for (Index a = 0; a < K; ++a) sums_bonus[h * K + a] += g.bonus[a];
  });
  q.put(grad.q);
  k.put(grad.k);
  v.put(grad.v);
  log_decay.put(grad.log_decay);
  for (Index i = 0; grad.bonus.present() && i < grad.bonus.size(); ++i)
    grad.bonus(i / grad.bonus.shape[1], i % grad.bonus.shape[1]) = T(sums_bonus[i]);
}

template void reference(const ChannelDecayInputs<float>&, const ChannelDecayOptions&, const ChannelDecayOutputs<float>&);
template void reference(const ChannelDecayInputs<double>&, const ChannelDecayOptions&, const ChannelDecayOutputs<double>&);
template void reference_vjp(const ChannelDecayInputs<float>&, const ChannelDecayOptions&, const ChannelDecayCotangents<float>&,
                            const ChannelDecayGradients<float>&);
template void reference_vjp(const ChannelDecayInputs<double>&, const ChannelDecayOptions&, const ChannelDecayCotangents<double>&,
                            const ChannelDecayGradients<double>&);

}  // namespace isomer::channel_decay_detail
