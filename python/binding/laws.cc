// Laws for arrays: a law with its options, called with arrays by name.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <list>

#include "isomer/laws/apply.h"
#include "python/binding/arrays.h"
#include "python/binding/contexts.h"
#include "python/binding/module.h"

namespace isomer::python {

namespace {
/// A law with its options: reading them once is what a short call is spared.
class BoundCall {
 public:
  BoundCall(const std::string& law, const std::map<std::string, std::string>& options) : law_(find_law(law)) {
    settings_ = Settings(options.begin(), options.end());
    require_known(law_.name(), settings_, law_.options());
    bound_ = law_.bind(settings_);
  }

  /// Arrays by name, None for those that are absent; `empty(shape, type)` makes the outputs; `finite`: other numbers are refused.
  [[nodiscard]] nb::dict operator()(const nb::dict& arrays, const std::string& form, int threads, nb::handle empty,
                                    bool finite) const {
    std::list<Borrowed> borrowed;
    NamedViews views;
    for (const auto& [key, array] : arrays) {
      if (array.is_none()) continue;
      const std::string name = nb::cast<std::string>(key);
      views.emplace(name, borrowed.emplace_back(name, array).view());
    }
    nb::dict made;
    const Form chosen = form_named(form);
    Context& context = context_of(threads);
    const auto make = [&](const std::string& name, Type type, const std::vector<Index>& shape) {
      const nb::gil_scoped_acquire locked;
      Made output = make_array(empty, type, shape);
      made[name.c_str()] = output.array;
      return law_view(output.view);
    };
    const nb::gil_scoped_release released;
    if (finite) require_finite(law_, views);
    apply(*bound_, views, chosen, context, make);
    return made;
  }

 private:
  const Law& law_;
  Settings settings_;
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
           nb::arg("finite"));
  module.def("laws", &all_laws, "What every law says about itself.");
}

}  // namespace isomer::python
