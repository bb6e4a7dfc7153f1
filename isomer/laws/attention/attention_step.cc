// Streaming: a cache of keys and values, and one query at a time against it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "isomer/laws/attention/attention_problem.h"

namespace isomer {

template <class T>
AttentionState<T>::AttentionState(const Shape& shape, const AttentionOptions& options)
    : shape_(shape), window_(options.window), sinks_(options.sinks) {
  require(options.direction == AttentionOptions::Direction::causal, "attention", "expected a causal direction for a state");
  if (window_ > 0) reserve(sinks_ + window_);
}

template <class T>
Index AttentionState<T>::kept() const {
  return window_ > 0 ? std::min(length_, sinks_ + window_) : length_;
}

template <class T>
Index AttentionState<T>::bytes() const {
  return kept() * shape_.B *
         ((shape_.Gk * shape_.K + shape_.Gv * shape_.V) * Index(sizeof(T)) +
          (written_.empty() ? 0 : shape_.H * Index(sizeof(double))));
}

template <class T>
void AttentionState<T>::reserve(Index slots) {
  const auto grow = [&](auto& x, Index lanes, Index width) {
    std::remove_reference_t<decltype(x)> larger(std::size_t(lanes * slots * width));
    for (Index i = 0; i < lanes && capacity_ > 0; ++i)
      std::copy_n(x.begin() + i * capacity_ * width, capacity_ * width, larger.begin() + i * slots * width);
    x.swap(larger);
  };
  grow(keys_, shape_.B * shape_.Gk, shape_.K);
  grow(values_, shape_.B * shape_.Gv, shape_.V);
  if (!forgotten_.empty()) grow(written_, shape_.B * shape_.H, 1);
  capacity_ = slots;
}

template <class T>
void AttentionState<T>::append(View<const T, 4> k, View<const T, 4> v, View<const T, 3> log_forget) {
  // A ring behind the sinks; without a window the cache doubles when it is full.
  const Index slot = window_ == 0 || length_ < sinks_ ? length_ : sinks_ + (length_ - sinks_) % window_;
  if (slot >= capacity_) reserve(std::max<Index>(2 * capacity_, 64));
  if (log_forget.present() && forgotten_.empty()) {
    forgotten_.assign(std::size_t(shape_.B * shape_.H), 0.0);
    written_.assign(std::size_t(shape_.B * shape_.H * capacity_), 0.0);
  }
  for (Index b = 0; b < shape_.B; ++b) {
    for (Index g = 0; g < shape_.Gk; ++g)
      for (Index d = 0; d < shape_.K; ++d)
        keys_[std::size_t(((b * shape_.Gk + g) * capacity_ + slot) * shape_.K + d)] = k(b, 0, g, d);
    for (Index g = 0; g < shape_.Gv; ++g)
      for (Index d = 0; d < shape_.V; ++d)
        values_[std::size_t(((b * shape_.Gv + g) * capacity_ + slot) * shape_.V + d)] = v(b, 0, g, d);
    for (Index h = 0; h < shape_.H && !forgotten_.empty(); ++h) {
      double& sum = forgotten_[std::size_t(b * shape_.H + h)];
      double* written = written_.data() + (b * shape_.H + h) * capacity_;
      const double f = log_forget.present() ? double(log_forget(b, 0, h)) : 0.0;
      if (f == -std::numeric_limits<double>::infinity())
        std::fill(written, written + capacity_, std::numeric_limits<double>::infinity());
      else
        sum += f;
      written[slot] = sum;
    }
  }
  ++length_;
}

template <class T>
bool AttentionState<T>::bias(Index b, Index h, T* bias) const {
  if (forgotten_.empty()) return false;
  const double now = forgotten_[std::size_t(b * shape_.H + h)];
  const double* written = written_.data() + (b * shape_.H + h) * capacity_;
  for (Index j = 0; j < kept(); ++j) bias[j] = T((now - written[j]) * std::numbers::log2e);
  return true;
}

template class AttentionState<float>;
template class AttentionState<double>;

namespace attention_detail {
namespace {

/// The query of position i of every sequence of the batch against the state. p: of the whole call, for scale and normaliser.
template <class T>
void read_state(const Problem& p, const AttentionInputs<T>& in, const AttentionState<T>& state, const AttentionOutputs<T>& out,
                Context& context) {
  context.parallel(in.q.shape[0] * p.H, [&](Index task, Workspace& workspace) {
    const Workspace::Scope scope(workspace);
    const Index b = task / p.H, h = task % p.H, kept = state.kept();
    const auto& shape = state.shape();
    const Head<T> head{.T_ = 1,
                       .S = kept,
                       .K = p.K,
                       .V = p.V,
                       .q = {in.q.at(b, 0, group_of(h, p.H, in.q.shape[2])), p.K},
                       .k = {state.keys(b, group_of(h, p.H, shape.Gk)), p.K},
                       .v = {state.values(b, group_of(h, p.H, shape.Gv)), p.V},
                       .visible = nullptr,
                       .forget_hi = nullptr,
                       .forget_lo = nullptr,
                       .first = 0,
                       .below = 0,
                       .above = 0,
                       .scale = T(p.scale * (p.taylor() ? 1.0 : std::numbers::log2e)),
                       .order = p.taylor() ? p.options.order : -1,
                       .block_q = 1,
                       .block_k = kept};
    T *bias = workspace.take<T>(kept), *x = workspace.take<T>(p.V), *o = workspace.take<T>(p.V), l = 0;
    const bool forgets = state.bias(b, h, bias);
    T* scores = workspace.take<T>(kept);
    with_isa(context.isa(), [&]<Isa I>() { Kernels<T, I>::step(head, forgets ? bias : nullptr, scores, x, &l); });
    normalise(p, x, l, double(kept), in.gate.present() ? double(in.gate(b, 0, h)) : 1.0, o);
    for (Index d = 0; d < p.V; ++d) out.o(b, 0, h, d) = o[d];
    if (out.log_sum.present()) out.log_sum(b, 0, h) = l;
  });
}

}  // namespace

template <class T>
void forward_steps(const Problem& p, const AttentionInputs<T>& in, const AttentionOutputs<T>& out, Context& context) {
  for (const Sequence& s : p.sequences) {
    AttentionState<T> state({1, p.H, in.k.shape[2], in.v.shape[2], p.K, p.V}, p.options);
    // One token of one sequence of each tensor.
    const auto token = [&](auto view, Index t) { return slice(slice(view, 0, s.batch, 1), 1, s.first + t, 1); };
    for (Index j = 0; j < p.keys(s); ++j) {
      state.append(token(in.k, j), token(in.v, j), in.log_forget.present() ? token(in.log_forget, j) : in.log_forget);
      const Index i = j - p.first();
      if (i < 0) continue;
      const AttentionInputs<T> one{
          .q = token(in.q, i), .k = {}, .v = {}, .gate = in.gate.present() ? token(in.gate, i) : in.gate};
      read_state(p, one, state, {.o = token(out.o, i), .log_sum = out.log_sum.present() ? token(out.log_sum, i) : out.log_sum},
                 context);
    }
  }
}

template void forward_steps(const Problem&, const AttentionInputs<float>&, const AttentionOutputs<float>&, Context&);
template void forward_steps(const Problem&, const AttentionInputs<double>&, const AttentionOutputs<double>&, Context&);

}  // namespace attention_detail

template <class T>
void attention_step(const AttentionInputs<T>& in, const AttentionOptions& options, AttentionState<T>& state,
                    const AttentionOutputs<T>& out, Context& context) {
  const attention_detail::Problem p = attention_detail::validate<T>(in, options, Form::step, out.o);
  const auto& shape = state.shape();
  require(p.T == 1 && p.S == 1, "attention", "expected one token for a step, got ", p.T);
  require(p.B == shape.B && p.H == shape.H && in.k.shape[2] == shape.Gk && in.v.shape[2] == shape.Gv && p.K == shape.K &&
              p.V == shape.V,
          "attention", "expected a token of the shape of the state");
  const Workspace::Scope scope(context.workspace());
  AttentionInputs<T> dense = in;
  dense.q = dense_rows(in.q, context.workspace());
  state.append(in.k, in.v, in.log_forget);
  attention_detail::read_state(p, dense, state, out, context);
}

template void attention_step(const AttentionInputs<float>&, const AttentionOptions&, AttentionState<float>&,
                             const AttentionOutputs<float>&, Context&);
template void attention_step(const AttentionInputs<double>&, const AttentionOptions&, AttentionState<double>&,
                             const AttentionOutputs<double>&, Context&);

}  // namespace isomer
