#include "isomer/laws/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "isomer/laws/attention/attention_problem.h"
#include "isomer/laws/exact_sum.h"

namespace isomer {

namespace attention_detail {

namespace {
constexpr const char* kOp = "attention";
using Normaliser = AttentionOptions::Normaliser;

/// Beyond it a polynomial is exp in any type, and takes as long as it has terms.
constexpr int kLargestOrder = 1000;

double default_eps(Normaliser normaliser) {
  switch (normaliser) {
    case Normaliser::l2: return 1e-12;
    case Normaliser::rms: return 1e-6;
    case Normaliser::layer: return 1e-5;
    default: return 0.0;
  }
}

void check_options(const Problem& p, Form form, bool forget) {
  const AttentionOptions& o = p.options;
  require(o.window >= 0, kOp, "expected window >= 0, got ", o.window);
  require(o.sinks >= 0, kOp, "expected sinks >= 0, got ", o.sinks);
  require(o.block >= 0, kOp, "expected block >= 0, got ", o.block);
  require(o.block == 0 || (!p.causal() && o.window == 0), kOp, "expected causal=false and no window with a block");
  require(!p.taylor() || (o.order >= 0 && o.order <= kLargestOrder), kOp, "expected order from 0 to ", kLargestOrder, ", got ",
          o.order);
  require(p.eps >= 0.0, kOp, "expected eps >= 0, got ", p.eps);
  if (p.distances > 0) {
    require(!p.taylor(), kOp, "expected kernel=exp with a bias, got taylor");
    require(o.sinks == 0, kOp, "expected sinks = 0 with a bias, got ", o.sinks);
  }
  if (p.causal()) {
    require(p.S >= p.T, kOp, "expected S >= T = ", p.T, " keys when causal, got ", p.S);
    return;
  }
  require(!forget, kOp, "expected no log_forget with causal=false");
  require(o.sinks == 0, kOp, "expected sinks = 0 with causal=false, got ", o.sinks);
  require(form != Form::step, kOp, "expected a form other than step with causal=false");
}

template <int R>
void expect_shape(const char* name, const std::array<Index, R>& got, const std::array<Index, R>& want) {
  for (int axis = 0; axis < R; ++axis)
    require(got[std::size_t(axis)] == want[std::size_t(axis)], kOp, "expected ", name, " of size ", want[std::size_t(axis)],
            " on axis ", axis, ", got ", got[std::size_t(axis)]);
}
}  // namespace

template <class T>
Problem validate(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, View<const T, 4> o) {
  require(in.q.present() && in.k.present() && in.v.present() && o.present(), kOp, "expected q, k, v and o, got an absent one");
  Problem p{.B = in.q.shape[0],
            .T = in.q.shape[1],
            .S = in.k.shape[1],
            .H = 0,
            .K = in.q.shape[3],
            .V = in.v.shape[3],
            .scale = 0,
            .eps = options.eps.value_or(default_eps(options.normaliser)),
            .distances = 0,
            .options = options,
            .sequences = {}};
  p.H = common_heads(kOp, in.q.shape[2], in.k.shape[2], in.v.shape[2]);
  p.scale = options.scale.value_or(1.0 / std::sqrt(double(std::max<Index>(p.K, 1))));
  expect_shape<4>("k", in.k.shape, {p.B, p.S, in.k.shape[2], p.K});
  expect_shape<4>("v", in.v.shape, {p.B, p.S, in.v.shape[2], p.V});
  expect_shape<4>("o", o.shape, {p.B, p.T, p.H, p.V});
  if (in.log_forget.present()) expect_shape<3>("log_forget", in.log_forget.shape, {p.B, p.S, p.H});
  require(in.gate.present() == (options.normaliser == Normaliser::gate), kOp,
          "expected a gate with normaliser=gate and only there");
  if (in.gate.present()) expect_shape<3>("gate", in.gate.shape, {p.B, p.T, p.H});
  if (in.bias.present()) {
    p.distances = in.bias.shape[1];
    require(in.bias.shape[0] == p.H && p.distances > 0, kOp, "expected a bias [H = ", p.H, ", N >= 1], got [", in.bias.shape[0],
            ", ", p.distances, "]");
  }
  check_options(p, form, in.log_forget.present());
  // As the kernels have it; false for NaN.
  require(T(options.clamp * p.logit_unit()) >= std::numeric_limits<T>::lowest(), kOp, "expected clamp > -inf, got ",
          options.clamp);
  if (!in.offsets.empty()) require(p.S == p.T, kOp, "expected S = T = ", p.T, " with offsets, got ", p.S);
  p.sequences = sequences(kOp, p.B, p.T, in.offsets);
  return p;
}

Index Problem::below() const {
  if (options.block > 0) return std::min(options.block, T + S) * 2 - 1;
  return options.window > 0 ? options.window - 1 : T + S;
}

Index Problem::place(Index r) const {
  const Index low = causal() ? 1 - distances : -(distances / 2);
  return std::clamp(r, low, low + distances - 1) - low;
}

Index Problem::above() const { return causal() ? 0 : below(); }

Visible Problem::visible(Index i, Index keys) const {
  const Index position = i + first();
  if (options.block > 0) {
    const Index block = std::min(options.block, T + S), own = position / block * block;
    const Index begin = std::clamp<Index>(own - block, 0, keys);
    return {0, 0, begin, std::clamp<Index>(own + 2 * block, begin, keys)};
  }
  const Index begin = std::clamp<Index>(position - below(), 0, keys),
              end = std::clamp<Index>(position + above() + 1, begin, keys);
  return {0, std::min(options.sinks, begin), begin, end};
}

Index Problem::count(Index i, Index keys) const {
  const Visible v = visible(i, keys);
  return v.sink_end - v.sink_begin + v.end - v.begin;
}

namespace {
/// Adds x · log2(e), the constant being good to 32 digits.
ExactSum add_in_base_2(ExactSum sum, double x) {
  constexpr double kHi = 0x1.71547652b82fep+0, kLo = 0x1.777d0ffda0d24p-56;
  const double product = x * kHi;
  sum = add(sum, product);
  sum.rest += std::fma(x, kHi, -product) + x * kLo;
  return sum;
}
}  // namespace

template <class T>
void prepare_head(const Problem& p, const Sequence& s, Index h, View<const T, 3> log_forget, Visible* visible, T* hi, T* lo) {
  const Index keys = p.keys(s);
  Index reset = 0, i = 0;
  ExactSum sum;
  if (!log_forget.present()) {
    for (; i < s.length; ++i) visible[i] = p.visible(i, keys);
    return;
  }
  for (Index j = 0; j < keys; ++j) {
    const double f = double(log_forget(s.batch, s.first + j, h));
    if (f == -std::numeric_limits<double>::infinity())
      reset = j;
    else
      sum = add_in_base_2(sum, f);
    hi[j] = T(sum.value);
    lo[j] = T(sum.value - double(hi[j]) + sum.rest);
    if (j < p.first()) continue;
    Visible v = p.visible(i, keys);
    v.sink_begin = std::min(std::max(v.sink_begin, reset), v.sink_end);
    v.begin = std::max(v.begin, std::min(reset, v.end));
    visible[i++] = v;
  }
}

template Problem validate(const AttentionInputs<float>&, const AttentionOptions&, Form, View<const float, 4>);
template Problem validate(const AttentionInputs<double>&, const AttentionOptions&, Form, View<const double, 4>);
template void prepare_head(const Problem&, const Sequence&, Index, View<const float, 3>, Visible*, float*, float*);
template void prepare_head(const Problem&, const Sequence&, Index, View<const double, 3>, Visible*, double*, double*);

}  // namespace attention_detail

namespace {
using attention_detail::Problem;
using attention_detail::Tiling;

template <class T>
AttentionInputs<T> dense(const AttentionInputs<T>& in, Workspace& scratch) {
  AttentionInputs<T> rows = in;
  for (View<const T, 4>* x : {&rows.q, &rows.k, &rows.v}) *x = dense_rows(*x, scratch);
  return rows;
}

Tiling tiling_of(Form form) { return form == Form::parallel ? Tiling::whole : Tiling::blocks; }
}  // namespace

template <class T>
void attention(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, const AttentionOutputs<T>& out,
               Context& context) {
  const Problem p = attention_detail::validate<T>(in, options, form, out.o);
  require(!out.log_sum.present() || (!p.taylor() && options.normaliser == AttentionOptions::Normaliser::sum), "attention",
          "expected kernel=exp and normaliser=sum for log_sum");
  const Workspace::Scope scope(context.workspace());
  const AttentionInputs<T> rows = dense(in, context.workspace());
  if (form == Form::reference)
    attention_detail::forward_reference(p, rows, out);
  else if (form == Form::step)
    attention_detail::forward_steps(p, rows, out, context);
  else
    attention_detail::forward_chunk(p, tiling_of(form), rows, out, context);
}

template <class T>
void attention_vjp(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, const AttentionOutputs<T>& saved,
                   View<const T, 4> grad_o, const AttentionGradients<T>& grad, Context& context) {
  const Problem p = attention_detail::validate<T>(in, options, form, grad_o);
  const Workspace::Scope scope(context.workspace());
  const AttentionInputs<T> rows = dense(in, context.workspace());
  if (form == Form::reference)
    attention_detail::backward_reference(p, rows, grad_o, grad);
  else
    attention_detail::backward_chunk(p, tiling_of(form), rows, saved, dense_rows(grad_o, context.workspace()), grad, context);
}

template void attention(const AttentionInputs<float>&, const AttentionOptions&, Form, const AttentionOutputs<float>&, Context&);
template void attention(const AttentionInputs<double>&, const AttentionOptions&, Form, const AttentionOutputs<double>&, Context&);
template void attention_vjp(const AttentionInputs<float>&, const AttentionOptions&, Form, const AttentionOutputs<float>&,
                            View<const float, 4>, const AttentionGradients<float>&, Context&);
template void attention_vjp(const AttentionInputs<double>&, const AttentionOptions&, Form, const AttentionOutputs<double>&,
                            View<const double, 4>, const AttentionGradients<double>&, Context&);

}  // namespace isomer
