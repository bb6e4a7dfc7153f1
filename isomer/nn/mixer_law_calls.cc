// The laws of a mixer as calls on named tensors, for proofs and for looking inside.
#include "isomer/autograd/fill.h"
#include "isomer/autograd/views.h"
#include "isomer/laws/layout.h"
#include "isomer/laws/values.h"
#include "isomer/nn/mixer.h"

namespace isomer {

namespace {
/// A dense copy in double.
template <class T>
Tensor doubles(const LawView& x) {
  Tensor tensor(Type::f64, x.dims());
  double* to = tensor.data<double>();
  std::array<Index, LawView::kMostAxes> shape{};
  std::fill(shape.begin(), shape.end(), Index(1));
  std::copy_n(x.shape.begin(), x.rank, shape.begin());
  each_element(shape, [&](const auto& i) {
    const T* from = static_cast<const T*>(x.data);
    for (std::size_t axis = 0; axis < std::size_t(x.rank); ++axis) from += i[axis] * x.stride[axis];
    *to++ = double(*from);
  });
  return tensor;
}

/// A value as the law's input.
template <class T>
LawView input_of(const graph::Law& work, std::size_t place, Var<T> x, const LawSizes& sizes) {
  const Axes& axes = axes_of_value(*work.law, work.given, work.law->law().inputs()[place], x.shape(), sizes);
  const ValueShape to = repeated(axes, x.shape(), sizes);
  if (x.dim(2) > 1 && x.dim(3) > 1 && to[2] == 1) x = ops::heads(x, 1);
  return tensor_of_value(law_view(broadcast(x.value, to)), axes);
}
}  // namespace

template <class T>
std::vector<LawCall> Mixer<T>::law_calls(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass) const {
  const std::span<const Var<T>> values = run(tape, x, nullptr, pass);
  std::vector<LawCall> calls;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const graph::Node& node = graph_.nodes[i];
    const auto* work = std::get_if<graph::Law>(&node.work);
    if (work == nullptr) continue;
    LawCall call{.node = int(i), .law = std::string(work->name()), .settings = work->law->settings()};
    const LawSizes sizes = graph::law_sizes(graph_, node, x.dim(0), x.dim(1));
    for (std::size_t r = 0; r < work->places.size(); ++r)
      call.inputs.emplace(work->roles[r],
                          doubles<T>(input_of(*work, work->places[r], values[std::size_t(node.inputs[r])], sizes)));
    Index begin = 0;
    for (const TensorSpec& output : work->law->law().outputs()) {
      if (!is_value(*work->law, work->given, output)) continue;
      const Axes& axes = work->law->axes(output, work->given)[0];
      const Index size = value_shape(axes, sizes)[3];
      call.outputs.emplace(output.name, doubles<T>(tensor_of_value(law_view(slice(values[i].value, 3, begin, size)), axes)));
      begin += size;
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

template std::vector<LawCall> Mixer<float>::law_calls(Tape<float>&, Var<float>, const MixerPass<float>&) const;
template std::vector<LawCall> Mixer<double>::law_calls(Tape<double>&, Var<double>, const MixerPass<double>&) const;

}  // namespace isomer
