// A law's call as a system, and its signals.
#include "isomer/base/error.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/shapes.h"
#include "isomer/mixers/dsf.h"

namespace isomer {

namespace {

DsfSource source_of(const Law& law, const Tensors& inputs, const Settings& settings, DsfPlace place, const DsfOptions& options) {
  for (const auto& [name, tensor] : inputs)
    require(tensor.type() == Type::f64 || name == "offsets", "dsf", "expected ", name, " of type F64, got ",
            name_of(tensor.type()));
  require(read_bool(settings, "causal", true), "dsf", "expected a causal law");
  DsfSource from{inputs, settings, bind_sizes(*law.bind(settings), inputs), {}, place, options};
  std::span<const std::int64_t> offsets;
  if (from.given("offsets")) {
    const Tensor& packed = from.tensor("offsets");
    offsets = {packed.data<std::int64_t>(), std::size_t(packed.size())};
  }
  const auto all = sequences("dsf", from.size("B"), from.size("T"), offsets);
  require(place.sequence >= 0 && place.sequence < Index(all.size()), "dsf", "expected a sequence below ", all.size(), ", got ",
          place.sequence);
  const Index H = from.sizes.contains("H") ? from.size("H") : 1;
  require(place.head >= 0 && place.head < H, "dsf", "expected a head below ", H, ", got ", place.head);
  from.sequence = all[std::size_t(place.sequence)];
  return from;
}

/// The numbers of a tensor [B,T,H,D] or [B,T,D] as the real or imaginary part of a signal; `skip` tokens are left out.
void put(const DsfSource& from, const Tensor& tensor, Index skip, Complex unit, Signal& to) {
  const bool heads = tensor.shape().size() == 4;
  const Index rows = tensor.shape()[1], G = heads ? tensor.shape()[2] : 1, D = tensor.shape().back();
  const Index g = heads ? group_of(from.place.head, from.size("H"), G) : 0;
  for (Index t = 0; t < to.T; ++t)
    for (Index c = 0; c < D; ++c) {
      const Index at = ((from.sequence.batch * rows + from.sequence.first + skip + t) * G + g) * D + c;
      to(t, c) += unit * tensor.data<double>()[at];
    }
}

}  // namespace

Dsf realise(const Law& law, const Tensors& inputs, const Settings& settings, DsfPlace place, const DsfOptions& options) {
  return law.bind(settings)->system(source_of(law, inputs, settings, place, options));
}

Signal written(const Law& law, const Tensors& inputs, DsfPlace place) {
  const DsfSource from = source_of(law, inputs, {}, place, {});
  const std::vector<std::string_view> names = law.bind({})->written();
  const Tensor& v = from.tensor(names[0]);
  Signal u{from.sequence.length, v.shape().back()};
  // Keys before the first query are in the initial state.
  put(from, v, v.shape()[1] - from.size("T"), 1, u);
  if (names.size() > 1 && from.given(names[1])) put(from, from.tensor(names[1]), 0, {0, 1}, u);
  return u;
}

Signal read(const Law& law, const Tensors& inputs, const Tensors& outputs, DsfPlace place) {
  const DsfSource from = source_of(law, inputs, {}, place, {});
  Signal y;
  // The first value of every token, and the imaginary part beside it if there is one.
  for (const TensorSpec& spec : law.outputs()) {
    const auto found = outputs.find(spec.name);
    if (found == outputs.end() || !differentiable(spec.domain) || !spec.axes[0].has(Letter::T)) continue;
    const bool first = y.values.empty();
    if (first) y = Signal{from.sequence.length, found->second.shape().back()};
    put(from, found->second, 0, first ? Complex(1) : Complex(0, 1), y);
    if (!first) break;
  }
  return y;
}

}  // namespace isomer
