// One query at a time against a cache of keys and values.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "isomer/laws/attention/attention_problem.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer {

namespace attention_detail {
namespace {

/// Keys that a task takes: what is read for it takes a few microseconds.
constexpr Index kStepKeys = 512;

/// A step, cut into tasks: queries that share keys and values against a stretch of keys. What becomes of a query on each stretch
/// is put together when all are done; stretches depend on the number of keys alone.
template <class T>
class StepPlan {
 public:
  StepPlan(const Problem& p, const AttentionInputs<T>& in, const AttentionState<T>& state, Workspace& scratch)
      : p_(p), in_(in), state_(state) {
    // Heads that have their keys and their values in common follow each other.
    const Index shared = std::gcd(p.H / state.shape().Gk, p.H / state.shape().Gv);
    for (together_ = std::min(kStepQueries, shared); shared % together_ != 0;) --together_;
    stretches_ = std::max<Index>(1, ceil_div(state.kept(), kStepKeys));
    const Index rows = B() * p.H * stretches_;
    all_ = {scratch.take<T>(rows * p.V), scratch.take<T>(rows), scratch.take<T>(rows)};
  }
  [[nodiscard]] Index tasks() const { return B() * p_.H / together_ * stretches_; }
  [[nodiscard]] Index stretches() const { return stretches_; }
  [[nodiscard]] Index together() const { return together_; }
  [[nodiscard]] Index B() const { return in_.q.shape[0]; }

  void run(Index task, Isa isa, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const Index stretch = task % stretches_, first = task / stretches_ * together_;  // row of batch and head
    const Index kept = state_.kept(), begin = kept * stretch / stretches_, count = kept * (stretch + 1) / stretches_ - begin;
    const Index b = first / p_.H, h = first % p_.H;
    StepQueries<T> queries{.count = together_};
    for (Index n = 0; n < together_; ++n) {
      queries.q[n] = in_.q.at(b, 0, group_of(h + n, p_.H, in_.q.shape[2]));
      if (!state_.forgets() && !in_.bias.present()) continue;
      T* bias = workspace.take<T>(count);
      if (state_.forgets())
        state_.decays(b, h + n, begin, {bias, std::size_t(count)});
      else
        std::fill_n(bias, count, T(0));
      for (Index j = 0; j < count && in_.bias.present(); ++j)
        bias[j] += T(double(in_.bias(h + n, p_.place(-state_.behind(begin + j)))) * std::numbers::log2e);
      queries.bias[n] = bias;
    }
    const Index row = row_of(first, stretch);
    const StepSums<T> to{all_.sums + row * p_.V, all_.high + row, all_.total + row};
    T* scores = workspace.take<T>(together_ * count);
    with_law_isa<T>(isa, [&]<Isa I>() { Kernels<T, I>::step(head(b, h, begin, count), queries, scores, to); });
  }

  /// The output of a row of batch and head.
  void finish(Index row, const AttentionOutputs<T>& out, Workspace& workspace) const {
    const Workspace::Scope scope(workspace);
    const Index b = row / p_.H, h = row % p_.H, V = p_.V;
    T *x = workspace.take<T>(V), *o = workspace.take<T>(V), high = all_.high[row_of(row, 0)], total = 0;
    for (Index s = 1; s < stretches_; ++s) high = std::max(high, all_.high[row_of(row, s)]);
    std::fill_n(x, V, T(0));
    for (Index s = 0; s < stretches_; ++s) {
      const Index at = row_of(row, s);
      const T factor = p_.taylor() || stretches_ == 1 ? T(1) : std::exp2(all_.high[at] - high);
      for (Index d = 0; d < V; ++d) x[d] += factor * all_.sums[at * V + d];
      total += factor * all_.total[at];
    }
    const T scale = p_.taylor() ? T(1) : T(1) / total;
    for (Index d = 0; d < V; ++d) x[d] *= scale;
    const T l = p_.taylor() ? total : high * T(std::numbers::ln2) + std::log(total);
    normalise(p_, x, l, double(state_.kept()), in_.gate.present() ? double(in_.gate(b, 0, h)) : 1.0, o);
    for (Index d = 0; d < V; ++d) out.o(b, 0, h, d) = o[d];
    if (out.log_sum.present()) out.log_sum(b, 0, h) = l;
  }

 private:
  /// The rows of a task stand together.
  [[nodiscard]] Index row_of(Index row, Index stretch) const {
    return (row / together_ * stretches_ + stretch) * together_ + row % together_;
  }
  [[nodiscard]] Head<T> head(Index b, Index h, Index begin, Index count) const {
    const auto& shape = state_.shape();
    return {.T_ = 1,
            .S = count,
            .K = p_.K,
            .V = p_.V,
            .q = {},
            .k = {state_.keys(b, group_of(h, p_.H, shape.Gk)) + begin * p_.K, p_.K},
            .v = {state_.values(b, group_of(h, p_.H, shape.Gv)) + begin * p_.V, p_.V},
            .visible = nullptr,
            .forget_hi = nullptr,
            .forget_lo = nullptr,
            .bias = nullptr,
            .first = 0,
            .below = 0,
            .above = 0,
            .scale = T(p_.scale * p_.logit_unit()),
            .clamp = T(p_.options.clamp * p_.logit_unit()),
            .order = p_.taylor() ? p_.options.order : -1,
            .block_q = 1,
            .block_k = count};
  }

  const Problem& p_;
  const AttentionInputs<T>& in_;
  const AttentionState<T>& state_;
  Index together_ = 1, stretches_ = 1;
  StepSums<T> all_{};
};

/// The query of every sequence of the batch against the state. p: of the whole call, for scale and normaliser.
template <class T>
void read_state(const Problem& p, const AttentionInputs<T>& in, const AttentionState<T>& state, const AttentionOutputs<T>& out,
                Context& context) {
  const Workspace::Scope scope(context.workspace());
  const StepPlan<T> plan(p, in, state, context.workspace());
  const bool whole = plan.stretches() == 1;
  context.parallel(plan.tasks(), [&](Index task, Workspace& workspace) {
    plan.run(task, context.isa(), workspace);
    for (Index n = 0; whole && n < plan.together(); ++n) plan.finish(task * plan.together() + n, out, workspace);
  });
  if (!whole)
    context.parallel_briefly(plan.B() * p.H, [&](Index row, Workspace& workspace) { plan.finish(row, out, workspace); });
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
          .q = token(in.q, i), .k = {}, .v = {}, .gate = in.gate.present() ? token(in.gate, i) : in.gate, .bias = in.bias};
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
