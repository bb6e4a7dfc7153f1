#include "isomer/laws/delta/delta.h"

#include <array>
#include <type_traits>

#include "isomer/base/error.h"
#include "isomer/laws/delta/delta_plan.h"
#include "isomer/laws/delta/delta_reference.h"
#include "isomer/laws/shape_check.h"

namespace isomer {

namespace {

using namespace delta_detail;

constexpr const char* kOp = "delta";

template <class T, int R>
void require_shape(const char* name, const View<T, R>& x, const std::type_identity_t<std::array<Index, R>>& shape) {
  isomer::require_shape(kOp, name, x, shape);
}

struct Shape {
  Index B, T, H, K, V, n;
};

template <class T>
Shape shape_of(const DeltaInputs<T>& in) {
  require(in.q.present() && in.k.present() && in.v.present(), kOp, "expected q, k and v, got none of at least one of them");
  const auto [B, L, Gq, K] = in.q.shape;
  const Index V = in.v.shape[3];
  require(K > 0 && V > 0, kOp, "expected K > 0 and V > 0, got ", K, " and ", V);
  const Index H = common_heads(kOp, Gq, in.k.shape[2], in.v.shape[2]);
  require_shape("k", in.k, {{B, L, in.k.shape[2], K}});
  require_shape("v", in.v, {{B, L, in.v.shape[2], V}});
  require_shape("beta", in.beta, {{B, L, H}});
  require_shape("log_decay", in.log_decay, {{B, L, H}});
  require_shape("log_decay", in.key_log_decay, {{B, L, H, K}});
  require_shape("a", in.a, {{B, L, H, K}});
  require_shape("b", in.b, {{B, L, H, K}});
  return {B, L, H, K, V, Index(sequences(kOp, B, L, in.offsets).size())};
}

template <class T>
Shape validate(const DeltaInputs<T>& in, const DeltaOptions& options, Form form) {
  const Shape shape = shape_of(in);
  require(in.a.present() == in.b.present(), kOp, "expected both a and b or neither, got ", in.a.present() ? "a" : "b");
  require(in.a.present() != in.beta.present(), kOp, "expected either beta or a and b, got ",
          in.beta.present() ? "all of them" : "none of them");
  require(!in.log_decay.present() || !in.key_log_decay.present(), kOp,
          "expected a log_decay of the head or of every key, got both");
  require(!in.a.present() || in.key_log_decay.present(), kOp, "expected a log_decay of every key with a and b, got ",
          in.log_decay.present() ? "one of the head" : "none");
  require_shape("initial_state", in.initial_state, {{shape.n, shape.H, shape.K, shape.V}});
  require(options.chunk >= 0, kOp, "expected chunk >= 0, got ", options.chunk);
  require(form != Form::parallel, kOp, "expected form auto, reference, step or chunk, got parallel");
  return shape;
}

template <class T>
void require_gradients(const DeltaInputs<T>& in, const DeltaGradients<T>& grad, const Shape& shape) {
  const std::array<Index, 3> gate{shape.B, shape.T, shape.H};
  const std::array<Index, 4> keys{shape.B, shape.T, shape.H, shape.K};
  require_shape("grad_q", grad.q, in.q.shape);
  require_shape("grad_k", grad.k, in.k.shape);
  require_shape("grad_v", grad.v, in.v.shape);
  require_shape("grad_beta", grad.beta, gate);
  require_shape("grad_log_decay", grad.log_decay, gate);
  require_shape("grad_log_decay", grad.key_log_decay, keys);
  require_shape("grad_a", grad.a, keys);
  require_shape("grad_b", grad.b, keys);
  require_shape("grad_initial_state", grad.initial_state, {{shape.n, shape.H, shape.K, shape.V}});
  const auto only = [&](bool wanted, bool given, const char* name) {
    require(!wanted || given, kOp, "expected grad_", name, " only with ", name);
  };
  only(grad.beta.present(), in.beta.present(), "beta");
  only(grad.log_decay.present(), in.log_decay.present(), "log_decay");
  only(grad.key_log_decay.present(), in.key_log_decay.present(), "key_log_decay");
  only(grad.a.present(), in.a.present(), "a");
  only(grad.b.present(), in.b.present(), "b");
}

}  // namespace

template <class T>
void delta(const DeltaInputs<T>& in, const DeltaOptions& options, Form form, const DeltaOutputs<T>& out, Context& context) {
  const Shape shape = validate(in, options, form);
  require(out.o.present(), kOp, "expected an o to write, got none");
  require_shape("o", out.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_shape("final_state", out.final_state, {{shape.n, shape.H, shape.K, shape.V}});
  if (out.tape) out.tape->chunk = 0;
  if (form == Form::reference) return reference(in, options, out);
  const Workspace::Scope scope(context.workspace());
  const Plan<T> plan = make_plan(in, options, out.tape != nullptr, context.workspace());
  DeltaOutputs<T> dense = out;
  dense.o = dense_output(out.o, context.workspace());
  const auto chosen = [&] { return choose(plan.rule.low_rank, out.tape != nullptr, shape.T, plan.K, plan.V).form; };
  if (form == Form::step || (form == Form::automatic && chosen() == Form::step))
    step(plan, dense, context);
  else
    forward(plan, dense, context);
  copy_back(dense.o, out.o);
}

template <class T>
void delta_vjp(const DeltaInputs<T>& in, const DeltaOptions& options, Form form, const DeltaCotangents<T>& given,
               const DeltaGradients<T>& grad, Context& context) {
  const Shape shape = validate(in, options, form);
  require_shape("grad_o", given.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_shape("grad_final_state", given.final_state, {{shape.n, shape.H, shape.K, shape.V}});
  require_gradients(in, grad, shape);
  if (form == Form::reference) return reference_vjp(in, options, given, grad);
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  DeltaOptions chunked = options;
  if (given.tape && given.tape->chunk > 0) chunked.chunk = given.tape->chunk;
  // A run of steps has the gradients of the same run in chunks.
  const Plan<T> plan = make_plan(in, chunked, true, scratch);
  DeltaCotangents<T> dense = given;
  dense.o = dense_rows(given.o, scratch);
  DeltaGradients<T> to = grad;
  const std::array<View<T, 4> DeltaGradients<T>::*, 6> rows{&DeltaGradients<T>::q, &DeltaGradients<T>::k,
                                                            &DeltaGradients<T>::v, &DeltaGradients<T>::a,
                                                            &DeltaGradients<T>::b, &DeltaGradients<T>::key_log_decay};
  for (auto x : rows) to.*x = head_output(grad.*x, shape.H, scratch);
  backward(plan, dense, to, context);
  for (auto x : rows) put_heads(to.*x, grad.*x, context);
}

template void delta(const DeltaInputs<float>&, const DeltaOptions&, Form, const DeltaOutputs<float>&, Context&);
template void delta(const DeltaInputs<double>&, const DeltaOptions&, Form, const DeltaOutputs<double>&, Context&);
template void delta_vjp(const DeltaInputs<float>&, const DeltaOptions&, Form, const DeltaCotangents<float>&,
                        const DeltaGradients<float>&, Context&);
template void delta_vjp(const DeltaInputs<double>&, const DeltaOptions&, Form, const DeltaCotangents<double>&,
                        const DeltaGradients<double>&, Context&);

}  // namespace isomer
