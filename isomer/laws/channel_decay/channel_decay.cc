#include "isomer/laws/channel_decay/channel_decay.h"

#include <array>

#include "isomer/base/error.h"
#include "isomer/laws/channel_decay/channel_decay_plan.h"
#include "isomer/laws/channel_decay/channel_decay_reference.h"
#include "isomer/laws/shape_check.h"

namespace isomer {

namespace {

using namespace channel_decay_detail;

constexpr const char* kOp = "channel_decay";

struct Shape {
  Index B, T, H, K, V, n;
};

template <class T>
Shape validate(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options) {
  require(in.q.present() && in.k.present() && in.v.present() && in.log_decay.present(), kOp,
          "expected q, k, v and log_decay, got none of at least one of them");
  const auto [B, L, Gq, K] = in.q.shape;
  const Index V = in.v.shape[3];
  require(K > 0 && V > 0, kOp, "expected K > 0 and V > 0, got ", K, " and ", V);
  const Index H = common_heads(kOp, Gq, in.k.shape[2], in.v.shape[2]);
  require_shape(kOp, "k", in.k, {{B, L, in.k.shape[2], K}});
  require_shape(kOp, "v", in.v, {{B, L, in.v.shape[2], V}});
  require_shape(kOp, "log_decay", in.log_decay, {{B, L, H, K}});
  require_shape(kOp, "bonus", in.bonus, {{H, K}});
  require(!in.bonus.present() || options.read == ChannelDecayOptions::Read::before, kOp,
          "expected bonus only with read before, got it with read after");
  require(options.chunk >= 0, kOp, "expected chunk >= 0, got ", options.chunk);
  const Shape shape{B, L, H, K, V, Index(sequences(kOp, B, L, in.offsets).size())};
  require_shape(kOp, "initial_state", in.initial_state, {{shape.n, H, K, V}});
  return shape;
}

}  // namespace

template <class T>
void channel_decay(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form,
                   const ChannelDecayOutputs<T>& out, Context& context) {
  const Shape shape = validate(in, options);
  require(out.o.present(), kOp, "expected an o to write, got none");
  require_shape(kOp, "o", out.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_shape(kOp, "final_state", out.final_state, {{shape.n, shape.H, shape.K, shape.V}});
  if (out.tape) out.tape->chunk = 0;
  if (form == Form::reference) return reference(in, options, out);
  const Workspace::Scope scope(context.workspace());
  if (form == Form::automatic) {
    const Carries carries{.state = in.initial_state.present() || out.final_state.present(), .tape = out.tape != nullptr};
    form = choose(carries, shape.n * shape.H, shape.T, shape.K, shape.V).form;
  }
  const Plan<T> plan = make_plan(in, options, form, out.tape != nullptr, context.workspace());
  ChannelDecayOutputs<T> dense = out;
  dense.o = dense_output(out.o, context.workspace());
  if (form == Form::step)
    step(plan, dense, context);
  else
    forward(plan, dense, context);
  copy_back(dense.o, out.o);
}

template <class T>
void channel_decay_vjp(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, Form form,
                       const ChannelDecayCotangents<T>& given, const ChannelDecayGradients<T>& grad, Context& context) {
  const Shape shape = validate(in, options);
  require_shape(kOp, "grad_o", given.o, {{shape.B, shape.T, shape.H, shape.V}});
  require_shape(kOp, "grad_final_state", given.final_state, {{shape.n, shape.H, shape.K, shape.V}});
  require_shape(kOp, "grad_q", grad.q, in.q.shape);
  require_shape(kOp, "grad_k", grad.k, in.k.shape);
  require_shape(kOp, "grad_v", grad.v, in.v.shape);
  require_shape(kOp, "grad_log_decay", grad.log_decay, in.log_decay.shape);
  require_shape(kOp, "grad_bonus", grad.bonus, {{shape.H, shape.K}});
  require_shape(kOp, "grad_initial_state", grad.initial_state, {{shape.n, shape.H, shape.K, shape.V}});
  require(!grad.bonus.present() || in.bonus.present(), kOp, "expected grad_bonus only with bonus");
  if (form == Form::reference) return reference_vjp(in, options, given, grad);
  const Workspace::Scope scope(context.workspace());
  ChannelDecayOptions chunked = options;
  if (given.tape && given.tape->chunk > 0) chunked.chunk = given.tape->chunk;
  // A run of steps has the gradients of the same run in chunks.
  const Plan<T> plan = make_plan(in, chunked, form == Form::parallel ? form : Form::chunk, true, context.workspace());
  ChannelDecayCotangents<T> dense = given;
  dense.o = dense_rows(given.o, context.workspace());
  const std::array<View<T, 4>, 4> wanted{grad.q, grad.k, grad.v, grad.log_decay};
  std::array<View<T, 4>, 4> heads;
  for (int x = 0; x < 4; ++x) heads[x] = head_output(wanted[x], shape.H, context.workspace());
  ChannelDecayGradients<T> to = grad;
  to.q = heads[0], to.k = heads[1], to.v = heads[2], to.log_decay = heads[3];
  backward(plan, dense, to, context);
  for (int x = 0; x < 4; ++x) put_heads(heads[x], wanted[x], context);
}

template void channel_decay(const ChannelDecayInputs<float>&, const ChannelDecayOptions&, Form, const ChannelDecayOutputs<float>&,
                            Context&);
template void channel_decay(const ChannelDecayInputs<double>&, const ChannelDecayOptions&, Form,
                            const ChannelDecayOutputs<double>&, Context&);

template void channel_decay_vjp(const ChannelDecayInputs<float>&, const ChannelDecayOptions&, Form,
                                const ChannelDecayCotangents<float>&, const ChannelDecayGradients<float>&, Context&);
template void channel_decay_vjp(const ChannelDecayInputs<double>&, const ChannelDecayOptions&, Form,
                                const ChannelDecayCotangents<double>&, const ChannelDecayGradients<double>&, Context&);

}  // namespace isomer
