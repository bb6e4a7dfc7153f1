// The equation as loops, in double; never optimised. Forward and backward, for every option.
#include <algorithm>
#include <cmath>
#include <vector>

#include "isomer/base/watch.h"
#include "isomer/laws/attention/attention_problem.h"

namespace isomer::attention_detail {

namespace {

double polynomial(double x, int order) {
  double term = 1, sum = order >= 0 ? 1 : 0;
  for (int n = 1; n <= order; ++n) sum += term *= x / n;
  return sum;
}

/// One head of one sequence, in double.
template <class T>
struct Head64 {
  const Problem& p;
  const AttentionInputs<T>& in;
  const Sequence& s;
  Index h;
  std::vector<Visible> visible;

  Head64(const Problem& problem, const AttentionInputs<T>& inputs, const Sequence& sequence, Index head)
      : p(problem), in(inputs), s(sequence), h(head), visible(std::size_t(sequence.length)) {
    for (Index i = 0; i < s.length; ++i) visible[std::size_t(i)] = p.visible(i, p.keys(s));
  }
  [[nodiscard]] double q(Index i, Index d) const {
    return double(in.q(s.batch, s.first + i, group_of(h, p.H, in.q.shape[2]), d));
  }
  [[nodiscard]] double k(Index j, Index d) const {
    return double(in.k(s.batch, s.first + j, group_of(h, p.H, in.k.shape[2]), d));
  }
  [[nodiscard]] double v(Index j, Index d) const {
    return double(in.v(s.batch, s.first + j, group_of(h, p.H, in.v.shape[2]), d));
  }
  [[nodiscard]] double logit(Index i, Index j) const {
    double dot = 0;
    for (Index d = 0; d < p.K; ++d) dot += q(i, d) * k(j, d);
    return p.scale * dot;
  }
  /// Sum of log_forget behind key j up to query i, term by term.
  [[nodiscard]] double forgotten(Index i, Index j) const {
    double sum = 0;
    if (in.log_forget.present())
      for (Index l = j + 1; l <= i + p.first(); ++l) sum += double(in.log_forget(s.batch, s.first + l, h));
    return sum;
  }
  [[nodiscard]] double bias(Index i, Index j) const {
    return in.bias.present() ? double(in.bias(h, p.place(j - i - p.first()))) : 0;
  }
  [[nodiscard]] bool sees(Index i, Index j) const {
    const Visible& w = visible[std::size_t(i)];
    return (j >= w.sink_begin && j < w.sink_end) || (j >= w.begin && j < w.end);
  }
  [[nodiscard]] double gate(Index i) const { return in.gate.present() ? double(in.gate(s.batch, s.first + i, h)) : 1.0; }

  /// One row: weights (relative to e^high for exp), the weighted mean or sum x, and l as in `normalise`.
  struct Row {
    std::vector<double> weights, slopes, x;
    double l = 0;
  };
  [[nodiscard]] Row row(Index i) const {
    const Index keys = p.keys(s);
    Row r{std::vector<double>(std::size_t(keys), 0.0), std::vector<double>(std::size_t(keys), 0.0),
          std::vector<double>(std::size_t(p.V), 0.0)};
    std::vector<double> logits(std::size_t(keys), -std::numeric_limits<double>::infinity());
    double high = -std::numeric_limits<double>::infinity(), total = 0;
    for (Index j = 0; j < keys; ++j) {
      if (!sees(i, j)) continue;
      const double free = logit(i, j), x = std::min(free, p.options.clamp), f = forgotten(i, j) + bias(i, j);
      // By the logit: nothing above the clamp.
      r.slopes[std::size_t(j)] = free > p.options.clamp ? 0 : 1;
      if (p.taylor()) {
        r.weights[std::size_t(j)] = std::exp(f) * polynomial(x, p.options.order);
        r.slopes[std::size_t(j)] *= std::exp(f) * polynomial(x, p.options.order - 1);
      } else {
        high = std::max(high, logits[std::size_t(j)] = x + f);
      }
    }
    for (Index j = 0; j < keys; ++j) {
      if (!p.taylor() && sees(i, j)) r.weights[std::size_t(j)] = std::exp(logits[std::size_t(j)] - high);
      total += r.weights[std::size_t(j)];
    }
    r.l = p.taylor() ? total : high + std::log(total);
    for (Index j = 0; j < keys; ++j) {
      double& w = r.weights[std::size_t(j)];
      if (!p.taylor() && total > 0) r.slopes[std::size_t(j)] *= w /= total;
      for (Index d = 0; d < p.V; ++d) r.x[std::size_t(d)] += w * v(j, d);
    }
    return r;
  }
};

/// The numbers of a dense array, in their order.
template <class T>
void copy4(const std::vector<double>& from, View<T, 4> to) {
  if (!to.present()) return;
  const double* x = from.data();
  for (Index b = 0; b < to.shape[0]; ++b)
    for (Index t = 0; t < to.shape[1]; ++t)
      for (Index h = 0; h < to.shape[2]; ++h)
        for (Index d = 0; d < to.shape[3]; ++d) to(b, t, h, d) = T(*x++);
}

}  // namespace

template <class T>
void forward_reference(const Problem& p, const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  std::vector<double> o(std::size_t(p.V), 0.0);
  for (const Sequence& s : p.sequences)
    for (Index h = 0; h < p.H; ++h) {
      const Head64<T> head(p, in, s, h);
      for (Index i = 0; i < s.length; ++i) {
        may_stop();
        const auto row = head.row(i);
        normalise<double>(p, row.x.data(), row.l, double(p.count(i, p.keys(s))), head.gate(i), o.data());
        for (Index d = 0; d < p.V; ++d) out.o(s.batch, s.first + i, h, d) = T(o[std::size_t(d)]);
        if (out.log_sum.present()) out.log_sum(s.batch, s.first + i, h) = T(row.l);
      }
    }
}

template <class T>
void backward_reference(const Problem& p, const AttentionInputs<T>& in, View<const T, 4> grad_o,
                        const AttentionGradients<T>& grad) {
  const auto zeros = [&](Index n) { return std::vector<double>(std::size_t(n), 0.0); };
  const Index Gq = in.q.shape[2], Gk = in.k.shape[2], Gv = in.v.shape[2];
  std::vector<double> dq = zeros(p.B * p.T * Gq * p.K), dk = zeros(p.B * p.S * Gk * p.K), dv = zeros(p.B * p.S * Gv * p.V);
  std::vector<double> df = zeros(p.B * p.S * p.H), dgate = zeros(p.B * p.T * p.H), dbias = zeros(p.H * p.distances);
  const auto at = [](std::vector<double>& x, Index b, Index rows, Index t, Index heads, Index h, Index width) {
    return x.data() + ((b * rows + t) * heads + h) * width;
  };
  std::vector<double> g = zeros(p.V), gx = zeros(p.V);
  for (const Sequence& s : p.sequences)
    for (Index h = 0; h < p.H; ++h) {
      const Head64<T> head(p, in, s, h);
      for (Index i = 0; i < s.length; ++i) {
        may_stop();
        const auto row = head.row(i);
        const Index b = s.batch, t = s.first + i;
        for (Index d = 0; d < p.V; ++d) g[std::size_t(d)] = double(grad_o(b, t, h, d));
        const ScalarGradients sg =
            normalise_vjp<double>(p, row.x.data(), row.l, double(p.count(i, p.keys(s))), head.gate(i), g.data(), gx.data());
        *at(dgate, b, p.T, t, p.H, h, 1) = sg.gate;
        // d mean / d logit_j = w_j (v_j − mean), d log-sum / d logit_j = w_j; for Taylor the weights themselves are independent.
        double delta = -sg.l;
        for (Index d = 0; d < p.V && !p.taylor(); ++d) delta += gx[std::size_t(d)] * row.x[std::size_t(d)];
        double* dqi = at(dq, b, p.T, t, Gq, group_of(h, p.H, Gq), p.K);
        for (Index j = 0; j < p.keys(s); ++j) {
          if (!head.sees(i, j)) continue;
          const double w = row.weights[std::size_t(j)];
          double* dvj = at(dv, b, p.S, s.first + j, Gv, group_of(h, p.H, Gv), p.V);
          double* dkj = at(dk, b, p.S, s.first + j, Gk, group_of(h, p.H, Gk), p.K);
          double dw = -delta;
          for (Index d = 0; d < p.V; ++d) {
            dw += gx[std::size_t(d)] * head.v(j, d);
            dvj[d] += w * gx[std::size_t(d)];
          }
          const double dlogit = row.slopes[std::size_t(j)] * dw;
          for (Index d = 0; d < p.K; ++d) {
            dqi[d] += p.scale * dlogit * head.k(j, d);
            dkj[d] += p.scale * dlogit * head.q(i, d);
          }
          for (Index l = j + 1; l <= i + p.first() && in.log_forget.present(); ++l)
            *at(df, b, p.S, s.first + l, p.H, h, 1) += w * dw;
          if (in.bias.present()) dbias[std::size_t(h * p.distances + p.place(j - i - p.first()))] += w * dw;
        }
      }
    }
  const auto copy3 = [&](const std::vector<double>& from, View<T, 3> to) {
    copy4(from, View<T, 4>{to.data, {to.shape[0], to.shape[1], to.shape[2], 1}, {to.stride[0], to.stride[1], to.stride[2], 1}});
  };
  copy4(dq, grad.q), copy4(dk, grad.k), copy4(dv, grad.v), copy3(df, grad.log_forget), copy3(dgate, grad.gate);
  const View<T, 2>& b = grad.bias;
  copy4(dbias, View<T, 4>{b.data, {1, 1, b.shape[0], b.shape[1]}, {0, 0, b.stride[0], b.stride[1]}});
}

template void forward_reference(const Problem&, const AttentionInputs<float>&, const AttentionOutputs<float>&);
template void forward_reference(const Problem&, const AttentionInputs<double>&, const AttentionOutputs<double>&);
template void backward_reference(const Problem&, const AttentionInputs<float>&, View<const float, 4>,
                                 const AttentionGradients<float>&);
template void backward_reference(const Problem&, const AttentionInputs<double>&, View<const double, 4>,
                                 const AttentionGradients<double>&);

}  // namespace isomer::attention_detail
