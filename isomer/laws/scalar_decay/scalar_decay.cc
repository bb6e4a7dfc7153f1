#include "isomer/laws/scalar_decay/scalar_decay.h"

#include <array>
#include <string_view>
#include <type_traits>

#include "isomer/base/error.h"
#include "isomer/laws/scalar_decay/scalar_decay_plan.h"
#include "isomer/laws/scalar_decay/scalar_decay_reference.h"
#include "isomer/laws/shape_check.h"

namespace isomer {

namespace {

using namespace scalar_decay_detail;
using Normaliser = ScalarDecayOptions::Normaliser;
using Direction = ScalarDecayOptions::Direction;

constexpr const char* kOp = "scalar_decay";

template <class T, int R>
void require_shape(std::string_view name, const View<T, R>& x, const std::type_identity_t<std::array<Index, R>>& shape) {
  isomer::require_shape(kOp, name, x, shape);
}

struct Shape {
  Index B, T, H, K, V, n;
};

template <class T>
Shape shape_of(const ScalarDecayInputs<T>& in) {
  require(in.q.present() && in.k.present() && in.v.present(), kOp, "expected q, k and v, got none of at least one of them");
  const auto [B, L, Gq, K] = in.q.shape;
  require(K > 0 && in.v.shape[3] > 0, kOp, "expected K > 0 and V > 0, got ", K, " and ", in.v.shape[3]);
  const Index H = common_heads(kOp, Gq, in.k.shape[2], in.v.shape[2]);
  const Index V = in.v.shape[3];
  require_shape("k", in.k, {{B, L, in.k.shape[2], K}});
  require_shape("v", in.v, {{B, L, in.v.shape[2], V}});
  require_shape("log_decay", in.log_decay, {{B, L, H}});
  require_shape("log_input", in.log_input, {{B, L, H}});
  return {B, L, H, K, V, Index(sequences(kOp, B, L, in.offsets).size())};
}

template <class T>
void require_states(std::string_view prefix, const ScalarDecayStates<T>& s, const Shape& shape, Normaliser normaliser) {
  isomer::require_shape(kOp, prefix, "state", s.state, {{shape.n, shape.H, shape.K, shape.V}});
  isomer::require_shape(kOp, prefix, "norm", s.norm, {{shape.n, shape.H, shape.K}});
  isomer::require_shape(kOp, prefix, "max", s.max, {{shape.n, shape.H}});
  isomer::require_shape(kOp, prefix, "value_sum", s.value_sum, {{shape.n, shape.H, shape.V}});
  isomer::require_shape(kOp, prefix, "count", s.count, {{shape.n}});
  const auto only = [&](bool present, bool used, const char* what, const char* where) {
    require(!present || used, kOp, "expected ", prefix, what, " only with ", where);
  };
  only(s.norm.present(), normaliser != Normaliser::none, "norm", "normaliser sum, max or subtract");
  only(s.max.present(), normaliser == Normaliser::max, "max", "normaliser max");
  only(s.value_sum.present(), normaliser == Normaliser::subtract, "value_sum", "normaliser subtract");
  only(s.count.present(), normaliser == Normaliser::subtract, "count", "normaliser subtract");
}

template <class T>
Shape validate(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form) {
  const Shape shape = shape_of(in);
  require_states("initial_", in.initial, shape, options.normaliser);
  require(options.chunk >= 0, kOp, "expected chunk >= 0, got ", options.chunk);
  require(options.eps >= 0, kOp, "expected eps >= 0, got ", options.eps);
  for (Index n = 0; n < shape.n && in.initial.count.present(); ++n)
    require(in.initial.count(n) >= 0, kOp, "expected initial_count >= 0, got ", in.initial.count(n));
  if (options.normaliser == Normaliser::subtract)
    require(!in.log_decay.present() && !in.log_input.present(), kOp, "expected no gates with normaliser subtract, got ",
            in.log_decay.present() ? "log_decay" : "log_input");
  if (options.direction == Direction::causal) return shape;
  const auto& s = in.initial;
  require(options.normaliser != Normaliser::max, kOp, "expected normaliser none, sum or subtract without causality, got max");
  require(!in.log_decay.present(), kOp, "expected no log_decay without causality, got one");
  require(!s.state.present() && !s.norm.present() && !s.value_sum.present() && !s.count.present(), kOp,
          "expected no initial states without causality, got some");
  require(form != Form::step, kOp, "expected form reference, chunk or parallel without causality, got step");
  return shape;
}

template <class T>
bool any(const ScalarDecayStates<T>& s) {
  return s.state.present() || s.norm.present() || s.max.present() || s.value_sum.present() || s.count.present();
}

// After the kernels: all heads read the initial count, and it may be the same memory.
template <class T>
void put_counts(const Plan<T>& plan, const ScalarDecayStates<T>& to) {
  for (std::size_t n = 0; n < plan.sequences.size() && to.count.present(); ++n)
    to.count(n) = (plan.in.initial.count.present() ? plan.in.initial.count(n) : T(0)) + T(plan.sequences[n].length);
}

}  // namespace

template <class T>
void scalar_decay(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form, const ScalarDecayOutputs<T>& out,
                  Context& context) {
  const Shape shape = validate(in, options, form);
  require(out.o.present(), kOp, "expected an o to write, got none");
  require_shape("o", out.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_states("final_", out.final_states, shape, options.normaliser);
  if (out.tape) out.tape->chunk = 0;
  if (form == Form::reference) return reference(in, options, out);
  const Workspace::Scope scope(context.workspace());
  if (form == Form::automatic) {
    const Carries carries{.state = any(in.initial) || any(out.final_states), .tape = out.tape != nullptr};
    form = choose(options, carries, shape.n * shape.H, shape.T, shape.K, shape.V).form;
  }
  const Plan<T> plan = make_plan(in, options, form, out.tape != nullptr, context.workspace());
  ScalarDecayOutputs<T> dense = out;
  dense.o = dense_output(out.o, context.workspace());
  // One chunk of `subtract` has only its first token to take sums about: long ones lose digits of the final states.
  const bool apart = form == Form::parallel && plan.rule.causal && plan.rule.centred && any(out.final_states);
  if (apart) dense.final_states = {};
  if (form == Form::step)
    step(plan, dense, context);
  else
    forward(plan, dense, context);
  if (apart) {
    const Plan<T> chunks = make_plan(in, options, Form::chunk, false, context.workspace());
    forward(chunks, {.o = {}, .final_states = out.final_states}, context);
  }
  copy_back(dense.o, out.o);
  put_counts(plan, out.final_states);
}

template <class T>
void scalar_decay_vjp(const ScalarDecayInputs<T>& in, const ScalarDecayOptions& options, Form form,
                      const ScalarDecayCotangents<T>& given, const ScalarDecayGradients<T>& grad, Context& context) {
  const Shape shape = validate(in, options, form);
  require_shape("grad_o", given.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_states("grad_final_", given.final_states, shape, options.normaliser);
  require_shape("grad_q", grad.q, in.q.shape);
  require_shape("grad_k", grad.k, in.k.shape);
  require_shape("grad_v", grad.v, in.v.shape);
  require_shape("grad_log_decay", grad.log_decay, {{shape.B, shape.T, shape.H}});
  require_shape("grad_log_input", grad.log_input, {{shape.B, shape.T, shape.H}});
  require(!grad.log_decay.present() || in.log_decay.present(), kOp, "expected grad_log_decay only with log_decay");
  require(!grad.log_input.present() || in.log_input.present(), kOp, "expected grad_log_input only with log_input");
  require_states("grad_initial_", grad.initial, shape, options.normaliser);
  if (form == Form::reference) return reference_vjp(in, options, given, grad);
  const Workspace::Scope scope(context.workspace());
  ScalarDecayOptions chunked = options;
  if (given.tape && given.tape->chunk > 0) chunked.chunk = given.tape->chunk;
  // A run of steps has the gradients of the same run in chunks.
  const Plan<T> plan = make_plan(in, chunked, form == Form::parallel ? form : Form::chunk, true, context.workspace());
  ScalarDecayCotangents<T> dense = given;
  dense.o = dense_rows(given.o, context.workspace());
  const std::array<View<T, 4>, 3> wanted{grad.q, grad.k, grad.v};
  std::array<View<T, 4>, 3> heads;
  for (int x = 0; x < 3; ++x) heads[x] = head_output(wanted[x], shape.H, context.workspace());
  ScalarDecayGradients<T> to = grad;
  to.q = heads[0], to.k = heads[1], to.v = heads[2];
  to.initial.max = {};
  to.initial.count = {};
  backward(plan, dense, to, context);
  for (int x = 0; x < 3; ++x) put_heads(heads[x], wanted[x], context);
}

template void scalar_decay(const ScalarDecayInputs<float>&, const ScalarDecayOptions&, Form, const ScalarDecayOutputs<float>&,
                           Context&);
template void scalar_decay(const ScalarDecayInputs<double>&, const ScalarDecayOptions&, Form, const ScalarDecayOutputs<double>&,
                           Context&);

template void scalar_decay_vjp(const ScalarDecayInputs<float>&, const ScalarDecayOptions&, Form,
                               const ScalarDecayCotangents<float>&, const ScalarDecayGradients<float>&, Context&);
template void scalar_decay_vjp(const ScalarDecayInputs<double>&, const ScalarDecayOptions&, Form,
                               const ScalarDecayCotangents<double>&, const ScalarDecayGradients<double>&, Context&);

}  // namespace isomer
