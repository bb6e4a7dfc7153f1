#include "isomer/laws/law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/layout.h"
#include "isomer/laws/shapes.h"

namespace isomer {

namespace {
constexpr std::array<std::string_view, 5> kForms{"auto", "reference", "step", "chunk", "parallel"};
constexpr std::string_view kGradient = "grad_";

int place_of(std::span<const TensorSpec> specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? -1 : int(found - specs.begin());
}

const TensorSpec* find(std::span<const TensorSpec> specs, std::string_view name) {
  const int place = place_of(specs, name);
  return place < 0 ? nullptr : &specs[std::size_t(place)];
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

void check_names(const BoundLaw& bound, const Call& call) {
  const Law& law = bound.law();
  const std::string op(law.name());
  const std::vector<std::string> names = input_names(law);
  const Given given = given_of(law, call.inputs);
  for (const auto& [name, tensor] : call.inputs) {
    const TensorSpec* output = output_of_gradient(law, name);
    if (output != nullptr && !differentiable(output->domain))
      fail(op.c_str(), "no gradient enters ", output->name, ", got ", name);
    require(std::find(names.begin(), names.end(), name) != names.end(), op.c_str(), "unknown input ", name,
            did_you_mean(name, names));
    require(bound.uses(output == nullptr ? std::string_view(name) : output->name, given), op.c_str(), name,
            " is not used with these options");
  }
  for (const TensorSpec& spec : law.inputs())
    require(!bound.needs(spec, given) || call.inputs.contains(spec.name), op.c_str(), "expected an input ", spec.name,
            ", found none");
}

void check_types(const Law& law, const NamedViews& inputs) {
  const std::string op(law.name());
  const std::pair<const std::string, TensorView>* first = nullptr;
  for (const auto& input : inputs) {
    const auto& [name, tensor] = input;
    const TensorSpec* spec = find(law.inputs(), name);
    const bool integers = spec != nullptr && spec->domain == Domain::offsets;
    if (integers) {
      require(tensor.type == Type::i64, op.c_str(), "expected ", name, " of type I64, got ", name_of(tensor.type));
      continue;
    }
    require(computable(tensor.type), op.c_str(), "expected ", name, " of type F32 or F64, got ", name_of(tensor.type));
    if (first == nullptr) first = &input;
    require(tensor.type == first->second.type, op.c_str(), "expected one floating type for all inputs, got ",
            name_of(first->second.type), " for ", first->first, " and ", name_of(tensor.type), " for ", name);
  }
}

template <class T>
void check_values(const std::string& op, const std::string& name, const TensorView& tensor, bool zero_decay) {
  // Rows of the last axis, one after the other.
  std::array<Index, TensorView::kMostAxes> outer{};
  std::fill(outer.begin(), outer.end(), Index(1));
  const std::size_t last = std::size_t(std::max(tensor.rank - 1, 0));
  std::copy_n(tensor.shape.begin(), last, outer.begin());
  const Index width = tensor.rank > 0 ? tensor.shape[last] : 1;
  each_element(outer, [&](const std::array<Index, TensorView::kMostAxes>& at) {
    const T* row = reinterpret_cast<const T*>(tensor.data);
    for (std::size_t axis = 0; axis < last; ++axis) row += at[axis] * tensor.stride[axis];
    for (Index i = 0; i < width; ++i) {
      const T x = row[i * tensor.stride[last]];
      if (std::isfinite(x) || (zero_decay && std::isinf(x) && x < 0)) continue;
      std::vector<Index> place(at.begin(), at.begin() + std::ptrdiff_t(last));
      place.push_back(i);
      fail(op.c_str(), "expected finite numbers", zero_decay ? " or -inf" : "", " in ", name, ", got ", x, " at ",
           text_of(place));
    }
  });
}

void check_values(const Law& law, const NamedViews& inputs) {
  const std::string op(law.name());
  for (const auto& [name, tensor] : inputs) {
    const TensorSpec* spec = find(law.inputs(), name);
    const bool zero_decay = spec != nullptr && spec->domain == Domain::log_decay;
    if (tensor.type == Type::f32) check_values<float>(op, name, tensor, zero_decay);
    if (tensor.type == Type::f64) check_values<double>(op, name, tensor, zero_decay);
  }
}

void check_form(const BoundLaw& bound, Form form) {
  if (form == Form::automatic) return;
  std::string offered(name_of(Form::automatic));
  for (Form other : bound.law().forms())
    if (bound.offers(other)) offered.append(", ").append(name_of(other));
  require(bound.offers(form), std::string(bound.law().name()).c_str(), "expected a form that it has with these options (",
          offered, "), got ", name_of(form));
}

std::vector<std::int64_t> offsets_of(const Law& law, const NamedViews& inputs) {
  std::vector<std::int64_t> offsets;
  for (const TensorSpec& spec : law.inputs())
    if (const auto found = inputs.find(spec.name); spec.domain == Domain::offsets && found != inputs.end())
      for (Index i = 0; i < found->second.size(); ++i) offsets.push_back(found->second.view<const std::int64_t, 1>()(i));
  return offsets;
}
}  // namespace

std::string_view name_of(Form form) { return kForms[std::size_t(form)]; }

Form form_named(std::string_view name) {
  const auto found = std::find(kForms.begin(), kForms.end(), name);
  if (found != kForms.end()) return Form(found - kForms.begin());
  const std::vector<std::string> names(kForms.begin(), kForms.end());
  throw Error("unknown form " + std::string(name) + did_you_mean(name, names));
}

int Law::input(std::string_view name) const { return place_of(inputs(), name); }
int Law::output(std::string_view name) const { return place_of(outputs(), name); }

LawSizes Law::bench_sizes(const BenchCase& c) const {
  return {.B = c.B, .T = c.T, .S = c.S > 0 ? c.S : c.T, .Gq = c.H, .Gk = c.H, .Gv = c.H, .H = c.H, .K = c.K, .V = c.V, .n = c.B};
}

Tensors Law::run(const Call& call, const Sizes& sizes) const {
  const std::shared_ptr<const BoundLaw> bound = bind(call.settings);
  const Given given = given_of(*this, call.inputs);
  const bool wanted = wants_gradients(call.inputs);
  Tensors made;
  const auto make = [&](const std::string& name, Type type, std::vector<Index> shape) {
    return law_view(made[name] = Tensor(type, std::move(shape)));
  };
  LawViews in, out, grad_out, grad_in;
  Type type = Type::f32;
  for (std::size_t i = 0; i < inputs().size(); ++i) {
    const TensorSpec& spec = inputs()[i];
    if (!given[i] || spec.domain == Domain::offsets) continue;
    in[i] = law_view(call.inputs.find(spec.name)->second);
    type = in[i].type;
    if (wanted && differentiable(spec.domain))
      grad_in[i] = make(std::string(kGradient) + std::string(spec.name), type, in[i].dims());
  }
  for (std::size_t i = 0; i < outputs().size(); ++i) {
    const TensorSpec& spec = outputs()[i];
    if (!bound->uses(spec.name, given)) continue;
    out[i] = make(std::string(spec.name), type, shape_of(bound->axes(spec, given)[0], sizes));
    if (const auto found = call.inputs.find(std::string(kGradient) + std::string(spec.name)); found != call.inputs.end())
      grad_out[i] = law_view(found->second);
  }
  LawTape tape;
  const std::vector<std::int64_t> offsets = offsets_of(*this, call.inputs);
  const LawRun run{offsets, call.form, wanted ? &tape : nullptr, call.context};
  bound->forward(in, out, run);
  if (wanted) bound->backward(in, out, grad_out, grad_in, run);
  return made;
}

bool wants_gradients(const NamedViews& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.first.starts_with(kGradient); });
}

Given given_of(const Law& law, const NamedViews& inputs) {
  Given given;
  for (std::size_t i = 0; i < law.inputs().size(); ++i)
    if (inputs.contains(law.inputs()[i].name)) given.add(i);
  return given;
}

Tensors apply(const Law& law, const Call& call) {
  require_known(law.name(), call.settings, law.options());
  const std::shared_ptr<const BoundLaw> bound = law.bind(call.settings);
  check_names(*bound, call);
  check_types(law, call.inputs);
  const Given given = given_of(law, call.inputs);
  Sizes sizes = bind_sizes(*bound, call.inputs);
  for (const auto& [name, tensor] : call.inputs)
    if (const TensorSpec* output = output_of_gradient(law, name))
      bind_shape(std::string(law.name()), name, bound->axes(*output, given), tensor.dims(), sizes);
  check_values(law, call.inputs);
  check_form(*bound, call.form);
  return law.run(call, sizes);
}

}  // namespace isomer
