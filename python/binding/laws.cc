// Laws for arrays: a law with its options, called with arrays by name.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "isomer/laws/apply.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"
#include "python/binding/named_arrays.h"

namespace isomer::python {

namespace {
/// A law with its options: reading them once is what a short call is spared.
class BoundCall {
 public:
  BoundCall(const std::string& law, const std::map<std::string, std::string>& options) : law_(find_law(law)) {
    const Settings settings(options.begin(), options.end());
    require_known(law_.name(), settings, law_.options());
    bound_ = law_.bind(settings);
  }

  /// `empty(shape, type)` makes the outputs; `finite`: other numbers are refused.
  [[nodiscard]] nb::dict operator()(const nb::dict& arrays, const std::string& form, int threads, nb::handle empty,
                                    bool finite) const {
    const NamedArrays in(arrays);
    Outputs made(empty);
    const Form chosen = form_named(form);
    Context& context = context_of(threads);
    {
      const Running running;
      if (finite) require_finite(law_, in.views());
      apply(*bound_, in.views(), chosen, context, std::ref(made));
    }
    return made.take();
  }

  /// The outputs by name, and under "tape" what backward() finds by its address.
  [[nodiscard]] nb::dict forward(const nb::dict& arrays, const std::string& form, int threads, nb::handle empty) const {
    const NamedArrays in(arrays);
    Outputs made(empty);
    const auto tape = std::make_shared<LawTape>();
    const NamedRun run{form_named(form), tape.get(), context_of(threads)};
    {
      const Running running;
      isomer::forward(*bound_, in.views(), run, std::ref(made));
    }
    nb::dict all = made.take();
    all["tape"] = Tapes<LawTape>::all().keep(tape);
    return all;
  }

  /// Gradients of the inputs that `wanted` names; `arrays` has inputs and grad_… of outputs, `outputs` what forward() made.
  [[nodiscard]] nb::dict backward(const nb::dict& arrays, const nb::dict& outputs, const std::set<std::string>& wanted,
                                  const std::string& form, int threads, nb::handle empty, std::uintptr_t tape) const {
    const NamedArrays in(arrays), out(outputs);
    Outputs made(empty);
    const std::shared_ptr<LawTape> kept = Tapes<LawTape>::all().find(tape);
    const NamedRun run{form_named(form), kept.get(), context_of(threads)};
    const auto make = [&](const std::string& name, Type type, const std::vector<Index>& shape) {
      return wanted.contains(name) ? made(name, type, shape) : LawView{};
    };
    {
      const Running running;
      isomer::backward(*bound_, in.views(), out.views(), run, make);
    }
    return made.take();
  }

  /// The outputs beside these inputs, with their axes: [("o", ["B", "T", "H", "V"]), …].
  using NamedAxes = std::vector<std::pair<std::string, std::vector<std::string>>>;
  [[nodiscard]] NamedAxes outputs(const std::set<std::string>& names) const {
    NamedAxes all;
    const Given given = given_of_names(names);
    for (const TensorSpec& spec : law_.outputs())
      if (bound_->uses(spec.name, given)) all.emplace_back(spec.name, letters(bound_->axes(spec, given)[0]));
    return all;
  }
  /// The axes that these inputs may have, one entry for each alternative.
  [[nodiscard]] NamedAxes inputs(const std::set<std::string>& names) const {
    NamedAxes all;
    const Given given = given_of_names(names);
    for (std::size_t i = 0; i < law_.inputs().size(); ++i)
      if (const TensorSpec& spec = law_.inputs()[i]; given[i] && spec.domain != Domain::offsets)
        for (const Axes& axes : bound_->axes(spec, given)) all.emplace_back(spec.name, letters(axes));
    return all;
  }

 private:
  [[nodiscard]] Given given_of_names(const std::set<std::string>& names) const {
    Given given;
    for (std::size_t i = 0; i < law_.inputs().size(); ++i)
      if (names.contains(std::string(law_.inputs()[i].name))) given.add(i);
    return given;
  }
  [[nodiscard]] static std::vector<std::string> letters(const Axes& axes) {
    std::vector<std::string> all;
    for (const Letter letter : axes) all.emplace_back(name_of(letter));
    return all;
  }

  const Law& law_;
  std::shared_ptr<const BoundLaw> bound_;
};

nb::list described(std::span<const TensorSpec> specs) {
  nb::list all;
  for (const TensorSpec& spec : specs) {
    nb::dict one;
    one["name"] = std::string(spec.name);
    one["dims"] = std::string(spec.dims);
    one["required"] = spec.required;
    one["differentiable"] = differentiable(spec.domain);
    all.append(one);
  }
  return all;
}

nb::list all_laws() {
  nb::list all;
  for (const Law* law : laws()) {
    nb::dict one;
    one["name"] = std::string(law->name());
    one["equation"] = std::string(law->equation());
    one["inputs"] = described(law->inputs());
    one["outputs"] = described(law->outputs());
    nb::list options, forms;
    for (const OptionSpec& option : law->options()) {
      nb::dict own;
      own["name"] = std::string(option.name);
      own["default"] = std::string(option.fallback);
      own["help"] = std::string(option.help);
      options.append(own);
    }
    for (const Form form : law->forms()) forms.append(std::string(name_of(form)));
    one["options"] = options;
    one["forms"] = forms;
    all.append(one);
  }
  return all;
}
}  // namespace

void bind_laws(nb::module_& module) {
  nb::class_<BoundCall>(module, "BoundLaw", "A law with its options.")
      .def(nb::init<const std::string&, const std::map<std::string, std::string>&>(), nb::arg("law"), nb::arg("options"))
      .def("__call__", &BoundCall::operator(), nb::arg("arrays"), nb::arg("form"), nb::arg("threads"), nb::arg("empty"),
           nb::arg("finite"))
      .def("forward", &BoundCall::forward, nb::arg("arrays"), nb::arg("form"), nb::arg("threads"), nb::arg("empty"))
      .def("backward", &BoundCall::backward, nb::arg("arrays"), nb::arg("outputs"), nb::arg("wanted"), nb::arg("form"),
           nb::arg("threads"), nb::arg("empty"), nb::arg("tape"))
      .def("outputs", &BoundCall::outputs, nb::arg("names"))
      .def("inputs", &BoundCall::inputs, nb::arg("names"));
  module.def(
      "tapes", [] { return Tapes<LawTape>::all().count(); }, "How many forward passes wait for their backward.");
  module.def(
      "address_of",
      [](const std::string& name, nb::handle array) {
        return reinterpret_cast<std::uintptr_t>(Borrowed(name, array).view().data);
      },
      nb::arg("name"), nb::arg("array"), "Where a law reads an array: its own memory, unless its type is converted.");
  module.def("laws", &all_laws, "What every law says about itself.");
}

}  // namespace isomer::python
