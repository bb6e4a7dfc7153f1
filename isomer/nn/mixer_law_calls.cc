// The laws of a mixer as calls on named tensors, for proofs and for looking inside.
#include "isomer/autograd/op_views.h"
#include "isomer/laws/layout.h"
#include "isomer/mixers/law_settings.h"
#include "isomer/nn/law_roles.h"
#include "isomer/nn/mixer.h"

namespace isomer {

namespace {
template <class T, int R>
Tensor doubles(const View<const T, R>& x) {
  Tensor tensor(Type::f64, {x.shape.begin(), x.shape.end()});
  double* to = tensor.data<double>();
  each_element(x.shape, [&](const auto& i) { *to++ = double(*element(x, i)); });
  return tensor;
}

/// The inputs of a law on B sequences of L tokens, in the shapes of the contracts.
template <class T>
struct Reader {
  const LawRoles& law;
  Index B, L;

  /// S6: `a` [C,N] and `d` [C].
  [[nodiscard]] Tensor scan_input(std::string_view role, Var<T> x) const {
    const Index N = x.dim(2) * x.dim(3);
    if (role == "a") return doubles<T, 2>(matrix(View<const T, 4>(x.value)));
    if (role == "d") return doubles<T, 1>({x.value.data, {N}, {1}});
    const View<const T, 4> all = rows_for(x, B, L).value();
    Tensor flat = doubles<T, 4>(all);
    Tensor tensor(Type::f64, {B, L, N});
    std::copy_n(flat.data<double>(), flat.size(), tensor.data<double>());
    return tensor;
  }
  [[nodiscard]] Tensor operator()(std::string_view role, Var<T> x) const {
    if (law.has("x")) return scan_input(role, x);
    const bool rows = role == "q" || role == "k" || role == "v";
    const bool of_keys =
        role == "a" || role == "b" ||
        (role == "log_decay" && (law.key_decay() || std::holds_alternative<ChannelDecayOptions>(law.law.options)));
    if (role == "bonus") return doubles<T, 2>(matrix(spread(View<const T, 4>(x.value), {1, 1, law.heads(), x.dim(3)})));
    if (rows || of_keys) return doubles<T, 4>(rows_for(x, B, L, rows ? x.dim(2) : law.heads()).value());
    return doubles<T, 3>(flat(gates_for("mixer", x, B, L, law.heads()).value()));
  }
};

/// o; of a scan h, and h_imag if it is complex.
template <class T>
Tensors outputs(const LawRoles& law, Var<T> y) {
  Tensors all;
  const View<const T, 4> value = y.value;
  if (!law.has("x")) {
    all.emplace("o", doubles<T, 4>(value));
    return all;
  }
  const View<const T, 3> flat{value.data, {y.dim(0), y.dim(1), y.dim(3)}, {value.stride[0], value.stride[1], value.stride[3]}};
  const bool s6 = law.has("step"), complex = law.has("angle") || law.has("x_imag");
  const Index N = complex ? y.dim(3) / 2 : y.dim(3);
  all.emplace(s6 ? "o" : "h", doubles<T, 3>(slice(flat, 2, 0, N)));
  if (complex) all.emplace("h_imag", doubles<T, 3>(slice(flat, 2, N, N)));
  return all;
}
}  // namespace

template <class T>
std::vector<LawCall> Mixer<T>::law_calls(Tape<T>& tape, Var<T> x, const Carried<T>& carried) {
  (void)forward(tape, x, carried);
  std::vector<LawCall> calls;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const graph::Node& node = graph_.nodes[i];
    const auto* law = std::get_if<graph::Law>(&node.work);
    if (law == nullptr) continue;
    const LawRoles roles{graph_, node, *law};
    LawCall call{.node = int(i), .law = std::string(graph::name_of(*law))};
    call.settings = settings_of(*law);
    const Reader<T> read{roles, x.dim(0), x.dim(1)};
    for (std::size_t r = 0; r < law->roles.size(); ++r)
      call.inputs.emplace(law->roles[r], read(law->roles[r], values_[std::size_t(node.inputs[r])]));
    call.outputs = outputs(roles, values_[i]);
    calls.push_back(std::move(call));
  }
  return calls;
}

template std::vector<LawCall> Mixer<float>::law_calls(Tape<float>&, Var<float>, const Carried<float>&);
template std::vector<LawCall> Mixer<double>::law_calls(Tape<double>&, Var<double>, const Carried<double>&);

}  // namespace isomer
