#include "isomer/autograd/fused.h"

#include <algorithm>

#include "isomer/kernels/elementwise/sum.h"

namespace isomer::ops {

namespace {
/// Are these parts of each row of one array, beside each other?
template <class T>
bool beside(const View<T, 4>& a, const View<T, 4>& b) {
  const Index apart = a.data < b.data ? b.data - a.data : a.data - b.data, row = a.shape[2] == 1 ? a.stride[1] : a.stride[2];
  return a.shape == b.shape && a.stride == b.stride && a.stride[3] == 1 && apart >= a.shape[3] && apart + a.shape[3] <= row;
}

/// Where gradients are put together: in place, or beside it if that overlaps another one's or is a sum of few numbers each.
template <class T>
class Targets {
 public:
  Targets(Tape<T>& tape, const Shape4& shape, std::span<const Var<T>> inputs)
      : tape_(tape), inputs_(inputs), scope_(tape.context().workspace()) {
    Workspace& scratch = tape.context().workspace();
    into_ = scratch.take<GradientTarget<T>>(Index(inputs.size()));
    written_ = scratch.take<FusedTarget<T>>(Index(inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      into_[i] = tape.target(inputs[i]);
      written_[i] = {into_[i].view, into_[i].mode};
      if (into_[i].present() && (overlaps(i) || sums_few(inputs[i].shape(), shape))) {
        written_[i] = {contiguous(scratch.take<T>(size_of(shape)), shape), Accumulate::set};
      }
    }
  }
  [[nodiscard]] std::span<const FusedTarget<T>> all() const { return {written_, inputs_.size()}; }
  void finish() {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (into_[i].present() && written_[i].view.data != into_[i].view.data)
        sum_to<T>({.x = written_[i].view}, into_[i].view, into_[i].mode, tape_.context());
  }

 private:
  static bool sums_few(const Shape4& input, const Shape4& shape) {
    constexpr Index kMany = 16;
    return input != shape && size_of(input) * kMany > size_of(shape);
  }
  [[nodiscard]] bool overlaps(std::size_t i) const {
    for (std::size_t j = 0; j < i; ++j)
      if (inputs_[j].slot == inputs_[i].slot && into_[j].present() && !beside(inputs_[j].value, inputs_[i].value)) return true;
    return false;
  }

  Tape<T>& tape_;
  std::span<const Var<T>> inputs_;
  Workspace::Scope scope_;
  GradientTarget<T>* into_ = nullptr;
  FusedTarget<T>* written_ = nullptr;
};

/// A copy that lives as long as the tape's values.
template <class T, class U>
std::span<U> kept(Tape<T>& tape, std::span<U> from) {
  using Plain = std::remove_const_t<U>;
  Plain* to = tape.template keep<Plain>(Index(from.size()));
  std::copy(from.begin(), from.end(), to);
  return {to, from.size()};
}
}  // namespace

template <class T>
void fused(Tape<T>& tape, const Fused& plan, std::span<const Var<T>> inputs, std::span<Var<T>> outputs) {
  Shape4 shape{1, 1, 1, 1};
  for (const Var<T>& input : inputs) shape = broadcast(shape, input.shape());
  auto* values = tape.template keep<View<const T, 4>>(Index(inputs.size()));
  std::transform(inputs.begin(), inputs.end(), values, [](const Var<T>& input) { return input.value; });
  auto* results = tape.template keep<View<T, 4>>(Index(outputs.size()));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].present()) outputs[o] = tape.make(shape, inputs);
    results[o] = outputs[o].value;
  }
  const std::span<const View<const T, 4>> x(values, inputs.size());
  fused<T>(plan, x, std::span<const View<T, 4>>(results, outputs.size()), tape.context());
  const std::span<const Var<T>> in = kept(tape, inputs), out = kept(tape, std::span<const Var<T>>(outputs));
  tape.record(out, [plan, x, in, out](Tape<T>& back) {
    const Workspace::Scope scope(back.context().workspace());
    auto* dy = back.context().workspace().template take<View<const T, 4>>(Index(out.size()));
    for (std::size_t o = 0; o < out.size(); ++o) dy[o] = out[o].slot->written ? back.arrived(out[o]) : View<const T, 4>{};
    Targets<T> targets(back, out[0].shape(), in);
    fused_vjp<T>(plan, x, std::span<const View<const T, 4>>(dy, out.size()), targets.all(), back.context());
    targets.finish();
  });
}

template void fused(Tape<float>&, const Fused&, std::span<const Var<float>>, std::span<Var<float>>);
template void fused(Tape<double>&, const Fused&, std::span<const Var<double>>, std::span<Var<double>>);

}  // namespace isomer::ops
