#include "isomer/laws/scan/scan.h"

#include "isomer/laws/scan/scan_reference.h"
#include "isomer/laws/scan/scan_run.h"
#include "isomer/laws/shape_check.h"

namespace isomer {

namespace {

using namespace scan_detail;

constexpr const char* kOp = "scan";

template <class T>
void require_states(std::string_view prefix, const ScanStates<T>& s, Index n, Index N, bool complex) {
  require_shape(kOp, prefix, "state", s.state, {{n, N}});
  require_shape(kOp, prefix, "imag", s.imag, {{n, N}});
  require(complex || !s.imag.present(), kOp, "expected ", prefix, "imag only with angle, x_imag or initial_imag");
}

// The number of sequences.
template <class T>
Index validate(const ScanInputs<T>& in, const ScanOptions& options, Form form) {
  require(in.log_decay.present() && in.x.present(), kOp, "expected log_decay and x, got none of at least one of them");
  const auto [B, L, N] = in.x.shape;
  require(N > 0, kOp, "expected N > 0, got ", N);
  require_shape(kOp, "log_decay", in.log_decay, in.x.shape);
  require_shape(kOp, "angle", in.angle, in.x.shape);
  require_shape(kOp, "x_imag", in.x_imag, in.x.shape);
  require(options.chunk >= 0, kOp, "expected chunk >= 0, got ", options.chunk);
  require(form != Form::parallel, kOp, "expected form reference, step or chunk, got parallel");
  const Index n = Index(sequences(kOp, B, L, in.offsets).size());
  require_states("initial_", in.initial, n, N, true);
  return n;
}

template <class T>
ScanInputs<T> dense(const ScanInputs<T>& in, Workspace& scratch) {
  ScanInputs<T> x = in;
  x.log_decay = dense_rows(in.log_decay, scratch);
  x.x = dense_rows(in.x, scratch);
  x.angle = dense_rows(in.angle, scratch);
  x.x_imag = dense_rows(in.x_imag, scratch);
  return x;
}

}  // namespace

template <class T>
void scan(const ScanInputs<T>& in, const ScanOptions& options, Form form, const ScanOutputs<T>& out, Context& context) {
  const Index n = validate(in, options, form), N = in.x.shape[2];
  const bool complex = in.complex();
  require(out.h.present(), kOp, "expected an h to write, got none");
  require(out.h_imag.present() == complex, kOp, "expected an h_imag to write ",
          complex ? "with complex numbers, got none" : "only with angle, x_imag or initial_imag");
  require_shape(kOp, "h", out.h, in.x.shape);
  require_shape(kOp, "h_imag", out.h_imag, in.x.shape);
  require_states("final_", out.final_states, n, N, complex);
  if (out.tape) out.tape->chunk = 0;
  if (form == Form::reference) return reference(in, out);
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  const ScanInputs<T> x = dense(in, scratch);
  const Cut cut = cut_for(x, options.chunk);
  ScanOutputs<T> to = out;
  to.h = dense_output(out.h, scratch);
  to.h_imag = dense_output(out.h_imag, scratch);
  T* edges = out.tape ? out.tape->record(cut.chunks.C, tape_size(x, cut)) : nullptr;
  // A step is a chunk of one token: the state is read and written once.
  forward(x, cut, to, edges, context);
  copy_back(to.h, out.h);
  copy_back(to.h_imag, out.h_imag);
}

template <class T>
void scan_vjp(const ScanInputs<T>& in, const ScanOptions& options, Form form, const ScanCotangents<T>& given,
              const ScanGradients<T>& grad, Context& context) {
  const Index n = validate(in, options, form), N = in.x.shape[2];
  const bool complex = in.complex();
  require_shape(kOp, "grad_h", given.h, in.x.shape);
  require_shape(kOp, "grad_h_imag", given.h_imag, in.x.shape);
  require(complex || !given.h_imag.present(), kOp, "expected grad_h_imag only with angle, x_imag or initial_imag");
  require_states("grad_final_", given.final_states, n, N, complex);
  require_shape(kOp, "grad_log_decay", grad.log_decay, in.x.shape);
  require_shape(kOp, "grad_x", grad.x, in.x.shape);
  require_shape(kOp, "grad_angle", grad.angle, in.x.shape);
  require_shape(kOp, "grad_x_imag", grad.x_imag, in.x.shape);
  require(complex || !grad.angle.present(), kOp, "expected grad_angle only with angle, x_imag or initial_imag");
  require(complex || !grad.x_imag.present(), kOp, "expected grad_x_imag only with angle, x_imag or initial_imag");
  require_states("grad_initial_", grad.initial, n, N, complex);
  if (form == Form::reference) return reference_vjp(in, given, grad);
  Workspace& scratch = context.workspace();
  const Workspace::Scope scope(scratch);
  const ScanInputs<T> x = dense(in, scratch);
  const bool taped = given.tape && given.tape->chunk > 0;
  const Cut cut = cut_for(x, taped ? given.tape->chunk : options.chunk);
  const Index size = tape_size(x, cut);
  const T* edges = taped && given.tape->holds(cut.chunks.C, size) ? given.tape->edges.data() : nullptr;
  if (edges == nullptr) {
    T* own = scratch.take<T>(size);
    forward(x, cut, ScanOutputs<T>{}, own, context);
    edges = own;
  }
  ScanCotangents<T> from = given;
  from.h = dense_rows(given.h, scratch);
  from.h_imag = dense_rows(given.h_imag, scratch);
  ScanGradients<T> to = grad;
  for (auto member : {&ScanGradients<T>::log_decay, &ScanGradients<T>::x, &ScanGradients<T>::angle, &ScanGradients<T>::x_imag})
    to.*member = dense_output(grad.*member, scratch);
  backward(x, cut, edges, from, to, context);
  for (auto member : {&ScanGradients<T>::log_decay, &ScanGradients<T>::x, &ScanGradients<T>::angle, &ScanGradients<T>::x_imag})
    copy_back(to.*member, grad.*member);
}

template void scan(const ScanInputs<float>&, const ScanOptions&, Form, const ScanOutputs<float>&, Context&);
template void scan(const ScanInputs<double>&, const ScanOptions&, Form, const ScanOutputs<double>&, Context&);
template void scan_vjp(const ScanInputs<float>&, const ScanOptions&, Form, const ScanCotangents<float>&,
                       const ScanGradients<float>&, Context&);
template void scan_vjp(const ScanInputs<double>&, const ScanOptions&, Form, const ScanCotangents<double>&,
                       const ScanGradients<double>&, Context&);

}  // namespace isomer
