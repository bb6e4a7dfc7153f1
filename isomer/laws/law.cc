#include "isomer/laws/law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/laws/shapes.h"

namespace isomer {

namespace {
constexpr std::array<std::string_view, 5> kForms{"auto", "reference", "step", "chunk", "parallel"};
constexpr std::string_view kGradient = "grad_";

const TensorSpec* find(std::span<const TensorSpec> specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

/// The output whose gradient an input of this name is, or null.
const TensorSpec* output_of_gradient(const Law& law, std::string_view name) {
  return name.starts_with(kGradient) ? find(law.outputs(), name.substr(kGradient.size())) : nullptr;
}

std::vector<std::string> input_names(const Law& law) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : law.inputs()) names.emplace_back(spec.name);
  for (const TensorSpec& spec : law.outputs())
    if (differentiable(spec.domain)) names.push_back(std::string(kGradient) + std::string(spec.name));
  return names;
}

void check_names(const Law& law, const Call& call) {
  const std::string op(law.name());
  const std::vector<std::string> names = input_names(law);
  for (const auto& [name, tensor] : call.inputs) {
    const TensorSpec* output = output_of_gradient(law, name);
    if (output != nullptr && !differentiable(output->domain))
      fail(op.c_str(), "no gradient enters ", output->name, ", got ", name);
    require(std::find(names.begin(), names.end(), name) != names.end(), op.c_str(), "unknown input ", name,
            did_you_mean(name, names));
    require(law.uses(output == nullptr ? std::string_view(name) : output->name, call.settings, call.inputs), op.c_str(), name,
            " is not used with these options");
  }
  for (const TensorSpec& spec : law.inputs())
    require(!spec.required || call.inputs.contains(spec.name), op.c_str(), "expected an input ", spec.name, ", found none");
}

void check_types(const Law& law, const Tensors& inputs) {
  const std::string op(law.name());
  const std::pair<const std::string, Tensor>* first = nullptr;
  for (const auto& input : inputs) {
    const auto& [name, tensor] = input;
    const TensorSpec* spec = find(law.inputs(), name);
    const bool integers = spec != nullptr && spec->domain == Domain::offsets;
    if (integers) {
      require(tensor.type() == Type::i64, op.c_str(), "expected ", name, " of type I64, got ", name_of(tensor.type()));
      continue;
    }
    require(computable(tensor.type()), op.c_str(), "expected ", name, " of type F32 or F64, got ", name_of(tensor.type()));
    if (first == nullptr) first = &input;
    require(tensor.type() == first->second.type(), op.c_str(), "expected one floating type for all inputs, got ",
            name_of(first->second.type()), " for ", first->first, " and ", name_of(tensor.type()), " for ", name);
  }
}

std::vector<Index> position_of(Index flat, const std::vector<Index>& shape) {
  std::vector<Index> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; flat /= shape[axis]) position[axis] = flat % shape[axis];
  return position;
}

template <class T>
void check_values(const std::string& op, const std::string& name, const Tensor& tensor, bool zero_decay) {
  const T* x = tensor.data<T>();
  const T* bad = std::find_if(x, x + tensor.size(),
                              [&](T value) { return !std::isfinite(value) && !(zero_decay && std::isinf(value) && value < 0); });
  if (bad == x + tensor.size()) return;
  fail(op.c_str(), "expected finite numbers", zero_decay ? " or -inf" : "", " in ", name, ", got ", *bad, " at ",
       text_of(position_of(bad - x, tensor.shape())));
}

void check_values(const Law& law, const Tensors& inputs) {
  const std::string op(law.name());
  for (const auto& [name, tensor] : inputs) {
    const TensorSpec* spec = find(law.inputs(), name);
    const bool zero_decay = spec != nullptr && spec->domain == Domain::log_decay;
    if (tensor.type() == Type::f32) check_values<float>(op, name, tensor, zero_decay);
    if (tensor.type() == Type::f64) check_values<double>(op, name, tensor, zero_decay);
  }
}

void check_form(const Law& law, Form form, const Settings& settings) {
  if (form == Form::automatic) return;
  std::string offered(name_of(Form::automatic));
  for (Form other : law.forms())
    if (law.offers(other, settings)) offered.append(", ").append(name_of(other));
  require(law.offers(form, settings), std::string(law.name()).c_str(), "expected a form that it has with these options (",
          offered, "), got ", name_of(form));
}
}  // namespace

std::string_view name_of(Form form) { return kForms[std::size_t(form)]; }

Form form_named(std::string_view name) {
  const auto found = std::find(kForms.begin(), kForms.end(), name);
  if (found != kForms.end()) return Form(found - kForms.begin());
  const std::vector<std::string> names(kForms.begin(), kForms.end());
  throw Error("unknown form " + std::string(name) + did_you_mean(name, names));
}

bool Law::offers(Form form, const Settings& settings) const {
  // A step goes from one token to the next, so it has no meaning where all tokens are seen at once.
  if (form == Form::step && !read_bool(settings, "causal", true)) return false;
  const auto all = forms();
  return form == Form::automatic || std::find(all.begin(), all.end(), form) != all.end();
}

Choice Law::choose(const BenchCase& what) const { return {what.direction == "step" ? Form::step : Form::chunk, 0}; }

bool Law::uses(std::string_view, const Settings&, const Tensors&) const { return true; }

std::string_view Law::dims(const TensorSpec& spec, const Tensors&) const { return spec.dims; }

bool wants_gradients(const Tensors& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.first.starts_with(kGradient); });
}

Tensors apply(const Law& law, const Call& call) {
  require_known(law.name(), call.settings, law.options());
  check_names(law, call);
  check_types(law, call.inputs);
  Sizes sizes = bind_sizes(law, call.inputs);
  for (const auto& [name, tensor] : call.inputs)
    if (const TensorSpec* output = output_of_gradient(law, name))
      bind_shape(std::string(law.name()), name, law.dims(*output, call.inputs), tensor, sizes);
  check_values(law, call.inputs);
  check_form(law, call.form, call.settings);
  return law.run(call, sizes);
}

}  // namespace isomer
