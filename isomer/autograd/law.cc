#include "isomer/autograd/law.h"

#include <algorithm>
#include <new>

#include "isomer/autograd/op_views.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/laws/values.h"

namespace isomer::ops {

namespace {
/// An input, as the law reads it.
template <class T>
struct Input {
  std::size_t place;
  Axes axes;
  Broadcast<T> value;
};

/// A call, for its gradient.
template <class T>
struct Recorded {
  const BoundLaw* bound;
  Given given;
  std::array<Input<T>, kMostTensors> inputs;
  std::size_t count = 0;
  LawViews kept = {};  // initial states of a stream, before they were overwritten
  std::span<const std::int64_t> offsets;
  Form form;
  LawTape* left = nullptr;
  Var<T> value;
  LawViews out = {};                        // with final states
  std::array<Var<T>, kMostTensors> finals;  // by output

  [[nodiscard]] LawViews in() const {
    LawViews all = kept;
    for (std::size_t i = 0; i < count; ++i)
      all[inputs[i].place] = tensor_of_value(law_view(inputs[i].value.value()), inputs[i].axes);
    return all;
  }
  /// The outputs in `y`, a value or its gradient.
  template <class U>
  void put_values(const View<U, 4>& y, LawViews& to) const {
    Index begin = 0;
    const std::span<const TensorSpec> specs = bound->law().outputs();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!is_value(*bound, given, specs[i])) continue;
      const Axes& axes = bound->axes(specs[i], given)[0];
      to[i] = tensor_of_value(law_view(slice(y, 3, begin, own_size)), axes);
      begin += own_size;
    }
  }
  Index own_size = 0;  // of one output, in the last axis: all have the same

  void backward(Tape<T>& tape) const;
};

template <class T>
void Recorded<T>::backward(Tape<T>& tape) const {
  GradientWriter<T> write(tape);
  LawViews grad_in, grad_out;
  for (std::size_t i = 0; i < count; ++i) {
    const View<T, 4> to = write(inputs[i].value);
    if (to.present()) grad_in[inputs[i].place] = tensor_of_value(law_view(to), inputs[i].axes);
  }
  put_values(tape.arrived(value), grad_out);
  const std::span<const TensorSpec> specs = bound->law().outputs();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (finals[i].present() && differentiable(specs[i].domain) && finals[i].slot->written)
      grad_out[i] = tensor_of_value(law_view(tape.arrived(finals[i])), bound->axes(specs[i], given)[0]);
  tape.timed(Profile::Kind::law, [&] { bound->backward(in(), out, grad_out, grad_in, {offsets, form, left, tape.context()}); });
  write.finish();
}

/// A state's memory as a value, for copying.
template <class T>
View<T, 4> padded(const LawView& x) {
  View<T, 4> view{static_cast<T*>(x.data), {1, 1, 1, 1}, {0, 0, 0, 0}};
  const std::size_t first = std::size_t(4 - x.rank);
  for (std::size_t i = 0; i < std::size_t(x.rank); ++i) view.shape[first + i] = x.shape[i], view.stride[first + i] = x.stride[i];
  return view;
}

/// A dense copy for the backward pass.
template <class T>
LawView kept_state(Tape<T>& tape, const LawView& x) {
  const View<const T, 4> copy = kept(tape, padded<T>(x), true);
  LawView own = x;
  own.data = const_cast<T*>(copy.data);
  const std::size_t first = std::size_t(4 - x.rank);
  for (std::size_t i = 0; i < std::size_t(x.rank); ++i) own.stride[i] = copy.stride[first + i];
  return own;
}

/// One call of the op.
template <class T>
class LawCall {
 public:
  LawCall(Tape<T>& tape, const BoundLaw& bound, const LawVars<T>& in, const LawOptions<T>& options)
      : tape_(tape), bound_(bound), law_(bound.law()), options_(options) {
    all_.bound = &bound;
    all_.form = options.form;
    read_inputs(in);
  }

  Var<T> operator()(const LawVars<T>& in) {
    const ValueShape shape = output_shape(bound_, all_.given, sizes_);
    const Var<T> y = tape_.make(shape, in);
    all_.value = y;
    // Every law has a value.
    all_.own_size = shape[3] / std::max<Index>(values(), 1);
    all_.put_values(y.value, all_.out);
    if (options_.stream != nullptr) return stream(y);
    if (y.wanted()) all_.left = tape_.law_tape();
    all_.offsets = kept_offsets(y.wanted());
    const LawViews initial = states(y.wanted());
    LawViews all = all_.in();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (initial[i].present()) all[i] = initial[i];
    std::array<Var<T>, kMostTensors> outputs;
    const std::size_t count = finals(in, outputs);
    tape_.timed(Profile::Kind::law, [&] {
      bound_.forward(all, all_.out, {all_.offsets, options_.form, all_.left, tape_.context()});
    });
    if (!y.wanted()) return y;
    const auto* recorded = new (tape_.template keep<Recorded<T>>(1)) Recorded<T>(all_);
    outputs[count] = y;
    tape_.record(std::span<const Var<T>>(outputs.data(), count + 1), [recorded](Tape<T>& back) { recorded->backward(back); });
    return y;
  }

 private:
  void read_inputs(const LawVars<T>& in) {
    const std::span<const TensorSpec> specs = law_.inputs();
    ValueShapes shapes{};
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!in[i].present()) continue;
      all_.given.add(i);
      shapes[i] = in[i].shape();
    }
    const std::span<const StateSpec> states = law_.states();
    for (std::size_t i = 0; i < options_.states.size(); ++i)
      if (options_.states[i].present()) all_.given.add(states[i].input);
    sizes_ = sizes_of(bound_, all_.given, shapes, Index(options_.offsets.size()) - 1);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!in[i].present()) continue;
      Var<T> x = in[i];
      const Axes& axes = axes_of_value(bound_, all_.given, specs[i], x.shape(), sizes_);
      ValueShape to = repeated(axes, x.shape(), sizes_);
      // Numbers in both axes side by side.
      if (x.dim(2) > 1 && x.dim(3) > 1 && to[2] == 1) x = heads(x, 1);
      all_.inputs[all_.count++] = {i, axes, {x, to}};
    }
  }
  [[nodiscard]] Index values() const {
    Index n = 0;
    for (const TensorSpec& spec : law_.outputs()) n += is_value(bound_, all_.given, spec) ? 1 : 0;
    return n;
  }
  Var<T> stream(Var<T> y) {
    require(!y.wanted(), std::string(law_.name()).c_str(),
            "expected inputs without gradients beside a state, got some that want one");
    tape_.timed(Profile::Kind::law, [&] { bound_.stream(all_.in(), all_.out, *options_.stream, tape_.context()); });
    return y;
  }
  std::span<const std::int64_t> kept_offsets(bool wanted) {
    if (options_.offsets.empty() || !wanted) return options_.offsets;
    std::int64_t* own = tape_.template keep<std::int64_t>(Index(options_.offsets.size()));
    std::copy(options_.offsets.begin(), options_.offsets.end(), own);
    return {own, options_.offsets.size()};
  }
  /// The memory of a stream: it comes in and is overwritten.
  LawViews states(bool wanted) {
    LawViews initial;
    for (std::size_t i = 0; i < options_.states.size(); ++i) {
      const LawView& memory = options_.states[i];
      if (!memory.present()) continue;
      const StateSpec& state = law_.states()[i];
      initial[state.input] = all_.out[state.output] = memory;
      if (wanted) all_.kept[state.input] = kept_state(tape_, memory);
    }
    return initial;
  }
  /// Final states as values: what has a gradient comes first in `outputs`; how many there are.
  std::size_t finals(const LawVars<T>& in, std::array<Var<T>, kMostTensors>& outputs) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < options_.finals.size(); ++i) {
      const StateSpec& state = law_.states()[i];
      if (state.grows() || !bound_.has_state(state, all_.given)) continue;
      const TensorSpec& spec = law_.outputs()[state.output];
      const Axes& axes = bound_.state_axes(state, all_.given);
      const bool carries = differentiable(spec.domain);
      const Var<T> made =
          tape_.make(value_shape(axes, sizes_), carries ? std::span<const Var<T>>(in) : std::span<const Var<T>>());
      options_.finals[i] = all_.finals[state.output] = made;
      all_.out[state.output] = tensor_of_value(law_view(made.value), axes);
      if (carries) outputs[count++] = made;
    }
    return count;
  }

  Tape<T>& tape_;
  const BoundLaw& bound_;
  const Law& law_;
  const LawOptions<T>& options_;
  LawSizes sizes_;
  Recorded<T> all_;
};
}  // namespace

template <class T>
Var<T> law(Tape<T>& tape, const BoundLaw& bound, const LawVars<T>& in, const LawOptions<T>& options) {
  return LawCall<T>(tape, bound, in, options)(in);
}

template <class T>
LawVars<T> law_vars(const Law& law, std::initializer_list<std::pair<std::string_view, Var<T>>> inputs) {
  LawVars<T> vars;
  for (const auto& [name, value] : inputs) {
    const int place = law.input(name);
    require(place >= 0, std::string(law.name()).c_str(), "unknown input ", name);
    vars[std::size_t(place)] = value;
  }
  return vars;
}

template Var<float> law(Tape<float>&, const BoundLaw&, const LawVars<float>&, const LawOptions<float>&);
template Var<double> law(Tape<double>&, const BoundLaw&, const LawVars<double>&, const LawOptions<double>&);
template LawVars<float> law_vars(const Law&, std::initializer_list<std::pair<std::string_view, Var<float>>>);
template LawVars<double> law_vars(const Law&, std::initializer_list<std::pair<std::string_view, Var<double>>>);

}  // namespace isomer::ops
