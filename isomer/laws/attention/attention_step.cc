// One query at a time against a cache of keys and values.
#include <cmath>

#include "isomer/laws/attention/attention_problem.h"
#include "isomer/laws/with_law_isa.h"

namespace isomer {

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
                       .scale = T(p.scale * p.logit_unit()),
                       .clamp = T(p.options.clamp * p.logit_unit()),
                       .order = p.taylor() ? p.options.order : -1,
                       .block_q = 1,
                       .block_k = kept};
    T *bias = workspace.take<T>(kept), *x = workspace.take<T>(p.V), *o = workspace.take<T>(p.V), l = 0;
    const bool forgets = state.bias(b, h, bias);
    T* scores = workspace.take<T>(kept);
    with_law_isa<T>(context.isa(), [&]<Isa I>() { Kernels<T, I>::step(head, forgets ? bias : nullptr, scores, x, &l); });
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
