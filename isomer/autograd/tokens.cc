#include "isomer/autograd/tokens.h"

#include <algorithm>

#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"
#include "isomer/base/error.h"
#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/binary.h"
#include "isomer/kernels/elementwise/cumulative.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

namespace {
template <class T>
Var<T> summed(Tape<T>& tape, Var<T> x, const CumulativeStates& states) {
  const Var<T> y = tape.make(x.shape(), {x});
  cumulative_sum<T>(x.value, states, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    cumulative_sum_vjp<T>(back.arrived(y), {}, dx.view, dx.mode, back.context());
  });
  return y;
}
}  // namespace

template <class T>
Var<T> running_sum(Tape<T>& tape, Var<T> x, View<double, 3> state) {
  return summed(tape, x, {.initial = state, .final = state});
}

template <class T>
Var<T> running_angle(Tape<T>& tape, Var<T> x, View<double, 3> state) {
  return summed(tape, x, {.initial = state, .final = state, .turns = true});
}

template <class T>
Var<T> running_mean(Tape<T>& tape, Var<T> x, View<double, 3> sum, Index before) {
  require(before >= 0, "running_mean", "expected before >= 0, got ", before);
  const Index L = x.dim(1);
  const View<T, 4> weight = contiguous(tape.template keep<T>(L), {1, L, 1, 1});
  for (Index t = 0; t < L; ++t) weight.data[t] = T(1.0 / double(before + t + 1));
  const Var<T> y = tape.make(x.shape(), {x});
  cumulative_sum<T>(x.value, {.initial = sum, .final = sum}, y.value, tape.context());
  binary<T>(Binary::multiply, y.value, weight, y.value, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    Workspace& scratch = back.context().workspace();
    const Workspace::Scope scope(scratch);
    const View<T, 4> scaled = contiguous(scratch.take<T>(y.value.size()), y.shape());
    binary<T>(Binary::multiply, back.arrived(y), weight, scaled, back.context());
    const auto dx = back.target(x);
    cumulative_sum_vjp<T>(scaled, {}, dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> mean(Tape<T>& tape, Var<T> x) {
  const double scale = 1.0 / double(std::max<Index>(x.dim(1), 1));
  const Var<T> y = tape.make({x.dim(0), 1, x.dim(2), x.dim(3)}, {x});
  sum_to<T>({.x = x.value, .scale = scale}, y.value, Accumulate::set, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    const auto dx = back.target(x);
    sum_to<T>({.x = spread(back.arrived(y), x.shape()), .scale = scale}, dx.view, dx.mode, back.context());
  });
  return y;
}

template <class T>
Var<T> shift(Tape<T>& tape, Var<T> x, View<T, 3> state) {
  const auto [B, L, H, D] = x.shape();
  if (state.present()) check_shape("shift", "state", state.shape, {B, H, D});
  const Var<T> y = tape.make(x.shape(), {x});
  if (L == 0) return y;
  // [B, H, D] as the one token [B, 1, H, D].
  const View<T, 4> token{state.data, {B, 1, H, D}, {state.stride[0], 0, state.stride[1], state.stride[2]}};
  const T zero = 0;
  const View<const T, 4> zeros{&zero, {B, 1, H, D}, {}};
  copy<T>(state.present() ? View<const T, 4>(token) : zeros, slice(y.value, 1, 0, 1), tape.context());
  copy<T>(slice(x.value, 1, 0, L - 1), slice(y.value, 1, 1, L - 1), tape.context());
  if (state.present()) copy<T>(slice(x.value, 1, L - 1, 1), token, tape.context());
  tape.record({y}, [=, tokens = L](Tape<T>& back) {
    const auto dx = back.target(x);
    sum_to<T>({.x = slice(back.arrived(y), 1, 1, tokens - 1)}, slice(dx.view, 1, 0, tokens - 1), dx.mode, back.context());
    const T nothing = 0;
    const View<T, 4> last = slice(dx.view, 1, tokens - 1, 1);
    if (dx.mode == Accumulate::set) copy<T>({&nothing, last.shape, {}}, last, back.context());
  });
  return y;
}

namespace {
template <class T>
Var<T> local(Tape<T>& tape, Var<T> v, const Spread<T>& weight, const Neighbourhood& near, View<T, 3> state) {
  const Var<T> y = tape.make(v.shape(), {v, weight.var});
  const View<const T, 3> initial = kept(tape, state, y.wanted());
  local_sum<T>({.v = v.value, .weight = weight.value(), .state = state}, near, {.y = y.value, .state = state}, tape.context());
  tape.record({y}, [=](Tape<T>& back) {
    Filling<T> fill(back);
    const LocalGradients<T> grad{.dv = fill(v), .dweight = fill(weight)};
    local_sum_vjp<T>({.v = v.value, .weight = weight.value(), .state = initial}, near, back.arrived(y), grad, back.context());
    fill.finish();
  });
  return y;
}
}  // namespace

template <class T>
Var<T> local_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index width, View<T, 3> state) {
  return local<T>(tape, v, {weight, {v.dim(0), weight.dim(1), v.dim(2), weight.dim(3)}}, {.width = width}, state);
}

template <class T>
Var<T> local_image_sum(Tape<T>& tape, Var<T> v, Var<T> weight, Index rows, Index columns) {
  require(weight.dim(1) >= 1, "local_image_sum", "expected weights of at least one token, got none");
  const Var<T> first = Tape<T>::part(weight, slice(weight.value, 1, 0, 1));
  return local<T>(tape, v, {first, {v.dim(0), 1, v.dim(2), weight.dim(3)}}, {.rows = rows, .columns = columns}, {});
}

template <class T>
Var<T> position(Tape<T>& tape, Index offset, Index tokens) {
  const Var<T> y = tape.make({1, tokens, 1, 1}, {});
  for (Index t = 0; t < tokens; ++t) y.value.data[t] = T(offset + t + 1);
  return y;
}

template Var<float> running_sum(Tape<float>&, Var<float>, View<double, 3>);
template Var<float> running_angle(Tape<float>&, Var<float>, View<double, 3>);
template Var<double> running_angle(Tape<double>&, Var<double>, View<double, 3>);
template Var<double> running_sum(Tape<double>&, Var<double>, View<double, 3>);
template Var<float> running_mean(Tape<float>&, Var<float>, View<double, 3>, Index);
template Var<double> running_mean(Tape<double>&, Var<double>, View<double, 3>, Index);
template Var<float> mean(Tape<float>&, Var<float>);
template Var<double> mean(Tape<double>&, Var<double>);
template Var<float> shift(Tape<float>&, Var<float>, View<float, 3>);
template Var<double> shift(Tape<double>&, Var<double>, View<double, 3>);
template Var<float> local_sum(Tape<float>&, Var<float>, Var<float>, Index, View<float, 3>);
template Var<double> local_sum(Tape<double>&, Var<double>, Var<double>, Index, View<double, 3>);
template Var<float> local_image_sum(Tape<float>&, Var<float>, Var<float>, Index, Index);
template Var<double> local_image_sum(Tape<double>&, Var<double>, Var<double>, Index, Index);
template Var<float> position(Tape<float>&, Index, Index);
template Var<double> position(Tape<double>&, Index, Index);

}  // namespace isomer
