#include "isomer/laws/scan/scan.h"
#include "isomer/laws/scan/scan_reference.h"
#include "isomer/laws/scan/scan_run.h"
#include "isomer/laws/shape_check.h"

namespace isomer {

namespace {

using namespace scan_detail;

constexpr const char* kOp = "scan";

// The number of sequences.
template <class T>
Index validate(const ScanS6Inputs<T>& in, const ScanOptions& options, Form form) {
  require(in.x.present() && in.step.present() && in.a.present() && in.b.present() && in.c.present(), kOp,
          "expected x, step, a, b and c, got none of at least one of them");
  const auto [B, L, C] = in.x.shape;
  const Index N = in.a.shape[1];
  require(C > 0 && N > 0, kOp, "expected C > 0 and N > 0, got ", C, " and ", N);
  require_shape(kOp, "step", in.step, in.x.shape);
  require_shape(kOp, "a", in.a, {{C, N}});
  require_shape(kOp, "b", in.b, {{B, L, N}});
  require_shape(kOp, "c", in.c, {{B, L, N}});
  require_shape(kOp, "d", in.d, {{C}});
  require(options.chunk >= 0, kOp, "expected chunk >= 0, got ", options.chunk);
  require(form != Form::parallel, kOp, "expected form reference, step or chunk, got parallel");
  const Index n = Index(sequences(kOp, B, L, in.offsets).size());
  require_shape(kOp, "initial_state", in.initial_state, {{n, C, N}});
  return n;
}

template <class T>
ScanS6Inputs<T> dense(const ScanS6Inputs<T>& in, Workspace& scratch) {
  ScanS6Inputs<T> x = in;
  x.x = dense_rows(in.x, scratch);
  x.step = dense_rows(in.step, scratch);
  x.a = dense_rows(in.a, scratch);
  x.b = dense_rows(in.b, scratch);
  x.c = dense_rows(in.c, scratch);
  x.d = dense_rows(in.d, scratch);
  x.initial_state = dense_rows(in.initial_state, scratch);
  return x;
}

}  // namespace

template <class T>
void scan_s6(const ScanS6Inputs<T>& in, const ScanOptions& options, Form form, const ScanS6Outputs<T>& out, Context& context) {
  const Index n = validate(in, options, form), C = in.x.shape[2], N = in.a.shape[1];
  require(out.o.present(), kOp, "expected an o to write, got none");
  require_shape(kOp, "o", out.o, in.x.shape);
  require_shape(kOp, "final_state", out.final_state, {{n, C, N}});
  if (out.tape) out.tape->chunk = 0;
  if (form == Form::reference) return reference(in, out);
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  const ScanS6Inputs<T> x = dense(in, scratch);
  const Cut cut = cut_for(x, options.chunk);
  ScanS6Outputs<T> to = out;
  to.o = dense_output(out.o, scratch);
  to.final_state = dense_output(out.final_state, scratch);
  if ((form == Form::automatic ? choose_s6(in.x.shape[1], out.tape != nullptr).form : form) == Form::step) {
    step(x, cut, to, context);
  } else {
    T* edges = out.tape ? out.tape->record(cut.chunks.C, tape_size(x, cut)) : nullptr;
    forward(x, cut, to, edges, context);
  }
  copy_back(to.o, out.o);
  copy_back(to.final_state, out.final_state);
}

template <class T>
void scan_s6_vjp(const ScanS6Inputs<T>& in, const ScanOptions& options, Form form, const ScanS6Cotangents<T>& given,
                 const ScanS6Gradients<T>& grad, Context& context) {
  const Index n = validate(in, options, form), C = in.x.shape[2], N = in.a.shape[1];
  require_shape(kOp, "grad_o", given.o, in.x.shape);
  require_shape(kOp, "grad_final_state", given.final_state, {{n, C, N}});
  require_shape(kOp, "grad_x", grad.x, in.x.shape);
  require_shape(kOp, "grad_step", grad.step, in.x.shape);
  require_shape(kOp, "grad_a", grad.a, in.a.shape);
  require_shape(kOp, "grad_b", grad.b, in.b.shape);
  require_shape(kOp, "grad_c", grad.c, in.b.shape);
  require_shape(kOp, "grad_d", grad.d, {{C}});
  require_shape(kOp, "grad_initial_state", grad.initial_state, {{n, C, N}});
  if (form == Form::reference) return reference_vjp(in, given, grad);
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  const ScanS6Inputs<T> x = dense(in, scratch);
  const bool taped = given.tape && given.tape->chunk > 0;
  const Cut cut = cut_for(x, taped ? given.tape->chunk : options.chunk);
  const Index size = tape_size(x, cut);
  const T* edges = taped && given.tape->holds(cut.chunks.C, size) ? given.tape->edges.data() : nullptr;
  if (edges == nullptr) {
    T* own = scratch.take<T>(size);
    forward(x, cut, ScanS6Outputs<T>{}, own, context);
    edges = own;
  }
  ScanS6Cotangents<T> from = given;
  from.o = dense_rows(given.o, scratch);
  ScanS6Gradients<T> to = grad;
  to.x = dense_output(grad.x, scratch);
  to.step = dense_output(grad.step, scratch);
  backward(x, cut, edges, from, to, context);
  copy_back(to.x, grad.x);
  copy_back(to.step, grad.step);
}

template void scan_s6(const ScanS6Inputs<float>&, const ScanOptions&, Form, const ScanS6Outputs<float>&, Context&);
template void scan_s6(const ScanS6Inputs<double>&, const ScanOptions&, Form, const ScanS6Outputs<double>&, Context&);
template void scan_s6_vjp(const ScanS6Inputs<float>&, const ScanOptions&, Form, const ScanS6Cotangents<float>&,
                          const ScanS6Gradients<float>&, Context&);
template void scan_s6_vjp(const ScanS6Inputs<double>&, const ScanOptions&, Form, const ScanS6Cotangents<double>&,
                          const ScanS6Gradients<double>&, Context&);

}  // namespace isomer
