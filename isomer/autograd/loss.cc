#include "isomer/autograd/loss.h"

#include "isomer/autograd/op_views.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

namespace {
/// Room for the gradient of an input, in its shape; absent if nobody will ask for it.
template <class T>
View<T, 4> waiting(Tape<T>& tape, Var<T> input) {
  if (!tape.recording() || !input.wanted()) return {};
  return contiguous(tape.template keep<T>(input.value.size()), input.shape());
}

template <class T>
void add_waiting(Tape<T>& back, View<const T, 4> gradient, double scale, Var<T> input) {
  if (const auto into = back.target(input); into.present())
    sum_to<T>({.x = gradient, .scale = scale}, into.view, into.mode, back.context());
}

/// [B, T, 1, D] as [B·T, D]: in place, or a copy where sequences are not evenly spaced.
template <class T>
View<const T, 2> all_rows(View<const T, 4> x, Context& context) {
  const auto& [B, L, H, D] = x.shape;
  if (B == 1 || x.stride[0] == L * x.stride[1]) return {x.data, {B * L, D}, {x.stride[1], x.stride[3]}};
  const View<T, 4> dense = contiguous(context.workspace().template take<T>(x.size()), {B, L, 1, D});
  copy<T>(x, dense, context);
  return {dense.data, {B * L, D}, {D, 1}};
}

template <class T>
View<T, 1> vector(View<T, 4> x) {
  return {x.data, {x.shape[3]}, {x.stride[3]}};
}
}  // namespace

template <class T>
Var<T> linear_cross_entropy(Tape<T>& tape, const CrossEntropyVars<T>& in, double softcap, LossResult* result) {
  const Index B = in.x.dim(0), L = in.x.dim(1), D = in.x.dim(3);
  check_shape("linear_cross_entropy", "x", in.x.shape(), {B, L, 1, D});
  check_shape("linear_cross_entropy", "labels", in.labels.shape, {B, L});
  const Var<T> x = in.x, weight = in.weight, bias = in.bias, loss = tape.make({1, 1, 1, 1}, {x, weight, bias});
  const View<T, 4> dx = waiting(tape, x), dweight = waiting(tape, weight), dbias = waiting(tape, bias);
  Workspace& scratch = tape.context().workspace();
  const Workspace::Scope scope(scratch);
  std::int64_t* labels = scratch.take<std::int64_t>(B * L);
  for (Index b = 0; b < B; ++b)
    for (Index t = 0; t < L; ++t) labels[b * L + t] = in.labels(b, t);
  tape.timed(Profile::Kind::product, [&] {
    const LossResult r = projected_cross_entropy<T>({.x = all_rows<T>(x.value, tape.context()),
                                                     .weight = matrix(View<const T, 4>(weight.value)),
                                                     .bias = vector(View<const T, 4>(bias.value)),
                                                     .labels = {labels, {B * L}, {1}},
                                                     .softcap = softcap},
                                                    {.dx = {dx.data, {B * L, D}, {D, 1}},
                                                     .dweight = matrix(dweight),
                                                     .dbias = vector(dbias),
                                                     .predicted = {in.predicted, {B * L}, {1}}},
                                                    tape.context());
    loss.value.data[0] = T(r.mean);
    if (result != nullptr) *result = r;
  });
  tape.record({loss}, [=](Tape<T>& back) {
    const double scale = double(*back.arrived(loss).data);
    add_waiting<T>(back, dx, scale, x);
    add_waiting<T>(back, dweight, scale, weight);
    add_waiting<T>(back, dbias, scale, bias);
  });
  return loss;
}

template <class T>
Var<T> mean_squared_error(Tape<T>& tape, Var<T> x, Var<T> target) {
  const Var<T> loss = tape.make({1, 1, 1, 1}, {x, target});
  const View<T, 4> dx = waiting(tape, x.wanted() ? x : target);
  loss.value.data[0] = T(mean_squared_error<T>(x.value, target.value, dx, 1, tape.context()));
  tape.record({loss}, [=](Tape<T>& back) {
    const double scale = double(*back.arrived(loss).data);
    add_waiting<T>(back, dx, scale, x);
    add_waiting<T>(back, dx, -scale, target);
  });
  return loss;
}

template Var<float> linear_cross_entropy(Tape<float>&, const CrossEntropyVars<float>&, double, LossResult*);
template Var<double> linear_cross_entropy(Tape<double>&, const CrossEntropyVars<double>&, double, LossResult*);
template Var<float> mean_squared_error(Tape<float>&, Var<float>, Var<float>);
template Var<double> mean_squared_error(Tape<double>&, Var<double>, Var<double>);

}  // namespace isomer
