// The Dynamical Systems view of laws and of layers.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer_dsf.h"
#include "python/binding/arrays.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"

namespace isomer::python {

namespace {
using Options = std::map<std::string, std::string>;
using Numbers = std::vector<Complex>;

/// An array with these numbers, of complex type.
nb::object complex_array(const Numbers& values, const std::vector<std::size_t>& shape) {
  auto* own = new Numbers(values);
  const nb::capsule owner(own, [](void* p) noexcept { delete static_cast<Numbers*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Complex>(own->data(), shape.size(), shape.data(), owner));
}

/// What is computed of a head without Python's lock.
struct Found {
  Dsf system;
  DsfMap map;
  MemoryHorizon horizon;
};

Found found_of(const std::string& law, const Tensors& in, const Settings& settings, DsfPlace place) {
  Dsf system = realise(find_law(law), in, settings, place);
  DsfMap map = materialise(system);
  const MemoryHorizon horizon = memory_horizon(map);
  return {std::move(system), std::move(map), horizon};
}

/// Λ = diag(decay) + left rightᵀ, B, C [T, groups, features], D [T, groups], matrix [groups, T, T].
nb::dict described(const Found& found) {
  const Dsf& system = found.system;
  Numbers decay, left, right, B, C, D;
  const auto append = [](Numbers& to, const Numbers& from) { to.insert(to.end(), from.begin(), from.end()); };
  bool rank_one = false;
  for (const DsfToken& token : system.tokens) rank_one = rank_one || !token.left.empty();
  const Numbers none(std::size_t(system.features), 0);
  for (const DsfToken& token : system.tokens) {
    append(decay, token.decay), append(B, token.B), append(C, token.C);
    D.push_back(token.D);
    if (rank_one) append(left, token.left.empty() ? none : token.left), append(right, token.right.empty() ? none : token.right);
  }
  const auto T = std::size_t(system.T), groups = std::size_t(system.groups), features = std::size_t(system.features);
  nb::dict all;
  all["decay"] = complex_array(decay, {T, groups, features});
  if (rank_one) {
    all["left"] = complex_array(left, {T, groups, features});
    all["right"] = complex_array(right, {T, groups, features});
  }
  all["B"] = complex_array(B, {T, groups, features});
  all["C"] = complex_array(C, {T, groups, features});
  all["D"] = complex_array(D, {T, groups});
  all["matrix"] = complex_array(found.map.values, {groups, T, T});
  all["memory_horizon"] = found.horizon.tokens;
  all["channels"] = system.channels;
  return all;
}

nb::dict of_law(const std::string& name, const nb::dict& arrays, const Options& options, Index sequence, Index head) {
  Tensors in;
  for (const auto& [key, array] : arrays) {
    const std::string tensor = nb::cast<std::string>(key);
    const Borrowed from(tensor, array);
    Tensor& own = in[tensor] = Tensor(floating(from.view().type) ? Type::f64 : Type::i64, from.view().dims());
    copy_numbers(from.view(), mutable_view_of(own));
  }
  const auto found = [&]() -> Found {
    const Running running;
    return found_of(name, in, Settings(options.begin(), options.end()), {.sequence = sequence, .head = head});
  };
  return described(found());
}

/// Every head of every law of a layer with random weights, on one sequence x [T, width].
nb::list of_preset(const std::string& name, nb::handle array, const Options& options, std::uint64_t seed) {
  const Borrowed from("x", array);
  require(from.view().rank == 2 && floating(from.view().type), "dsf", "expected x of shape [T, width], got ",
          text_of(from.view().dims()));
  const Index T = from.view().shape[0], width = from.view().shape[1];
  Tensor x(Type::f64, {T, width});
  copy_numbers(from.view(), mutable_view_of(x));
  std::vector<std::pair<std::string, std::vector<Found>>> laws;
  {
    const Running running;
    const graph::Graph graph = build_mixer(name, {.width = width}, Settings(options.begin(), options.end()));
    require(graph::causal(graph), "dsf", "expected a causal mixer, got ", name, " of whole sequences");
    Parameters<double> parameters;
    const Mixer<double> mixer(graph, parameters, "");
    initialise(parameters, seed);
    Tape<double> tape(context_of(0), Record::no);
    const Var<double> input = tape.input(contiguous(x.data<double>(), {1, T, 1, width}));
    for (const LawCall& call : mixer.law_calls(tape, input, {})) {
      const Index heads = call.outputs.contains("o") && call.inputs.contains("q") ? call.outputs.at("o").shape()[2] : 1;
      std::vector<Found> found;
      for (Index head = 0; head < heads; ++head)
        found.push_back(found_of(call.law, call.inputs, call.settings, {.sequence = 0, .head = head}));
      laws.emplace_back(call.law, std::move(found));
    }
  }
  nb::list all;
  for (const auto& [law, heads] : laws)
    for (std::size_t head = 0; head < heads.size(); ++head) {
      nb::dict one = described(heads[head]);
      one["law"] = law;
      one["head"] = head;
      all.append(one);
    }
  return all;
}
}  // namespace

void bind_systems(nb::module_& module) {
  module.def("dsf_of_law", &of_law, nb::arg("law"), nb::arg("arrays"), nb::arg("options"), nb::arg("sequence"), nb::arg("head"));
  module.def("dsf_of_preset", &of_preset, nb::arg("preset"), nb::arg("x"), nb::arg("options"), nb::arg("seed"));
}

}  // namespace isomer::python
