#include "isomer/laws/law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/laws/apply.h"
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

void check_names(const BoundLaw& bound, const NamedViews& inputs) {
  const Law& law = bound.law();
  const std::string op(law.name());
  const Given given = given_of(law, inputs);
  for (const auto& [name, tensor] : inputs) {
    const TensorSpec* output = output_of_gradient(law, name);
    if (output != nullptr && !differentiable(output->domain))
      fail(op.c_str(), "no gradient enters ", output->name, ", got ", name);
    if (output == nullptr && law.input(name) < 0) fail(op.c_str(), "unknown input ", name, did_you_mean(name, input_names(law)));
    require(bound.uses(output == nullptr ? std::string_view(name) : output->name, given), op.c_str(), name,
            " is not used with these options");
  }
  for (const TensorSpec& spec : law.inputs())
    require(!bound.needs(spec, given) || inputs.contains(spec.name), op.c_str(), "expected an input ", spec.name, ", found none");
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

void check_form(const BoundLaw& bound, Form form) {
  if (form == Form::automatic || bound.offers(form)) return;
  std::string offered(name_of(Form::automatic));
  for (Form other : bound.law().forms())
    if (bound.offers(other)) offered.append(", ").append(name_of(other));
  fail(std::string(bound.law().name()).c_str(), "expected a form that it has with these options (", offered, "), got ",
       name_of(form));
}

std::vector<std::int64_t> offsets_of(const Law& law, const NamedViews& inputs) {
  std::vector<std::int64_t> offsets;
  for (const TensorSpec& spec : law.inputs())
    if (const auto found = inputs.find(spec.name); spec.domain == Domain::offsets && found != inputs.end())
      for (Index i = 0; i < found->second.size(); ++i) offsets.push_back(found->second.view<const std::int64_t, 1>()(i));
  return offsets;
}

/// Names, types, shapes and form.
Sizes check_call(const BoundLaw& bound, const NamedViews& inputs, Form form) {
  const Law& law = bound.law();
  check_names(bound, inputs);
  check_types(law, inputs);
  const Given given = given_of(law, inputs);
  Sizes sizes = bind_sizes(bound, inputs);
  for (const auto& [name, tensor] : inputs)
    if (const TensorSpec* output = output_of_gradient(law, name))
      bind_shape(std::string(law.name()), name, bound.axes(*output, given), tensor.dims(), sizes);
  check_form(bound, form);
  return sizes;
}

/// The law's inputs by their places.
LawViews inputs_of(const Law& law, const NamedViews& inputs) {
  LawViews in;
  for (std::size_t i = 0; i < law.inputs().size(); ++i)
    if (const auto found = inputs.find(law.inputs()[i].name); found != inputs.end() && law.inputs()[i].domain != Domain::offsets)
      in[i] = law_view(found->second);
  return in;
}

Type type_of_all(const LawViews& in) {
  const auto first = std::find_if(in.begin(), in.end(), [](const LawView& view) { return view.present(); });
  return first == in.end() ? Type::f32 : first->type;
}

/// Returns the outputs by their places.
LawViews run_forward(const BoundLaw& bound, const NamedViews& inputs, const NamedRun& run, const Sizes& sizes,
                     const MakeTensor& make) {
  const Law& law = bound.law();
  const Given given = given_of(law, inputs);
  const LawViews in = inputs_of(law, inputs);
  LawViews out;
  for (std::size_t i = 0; i < law.outputs().size(); ++i)
    if (const TensorSpec& spec = law.outputs()[i]; bound.uses(spec.name, given))
      out[i] = make(std::string(spec.name), type_of_all(in), shape_of(bound.axes(spec, given)[0], sizes));
  const std::vector<std::int64_t> offsets = offsets_of(law, inputs);
  bound.forward(in, out, {offsets, run.form, run.tape, run.context});
  return out;
}

void run_backward(const BoundLaw& bound, const NamedViews& inputs, const LawViews& out, const NamedRun& run,
                  const MakeTensor& make) {
  const Law& law = bound.law();
  const LawViews in = inputs_of(law, inputs);
  LawViews grad_out, grad_in;
  for (std::size_t i = 0; i < law.inputs().size(); ++i)
    if (const TensorSpec& spec = law.inputs()[i]; in[i].present() && differentiable(spec.domain))
      grad_in[i] = make(std::string(kGradient) + std::string(spec.name), in[i].type, in[i].dims());
  for (std::size_t i = 0; i < law.outputs().size(); ++i)
    if (const auto found = inputs.find(std::string(kGradient) + std::string(law.outputs()[i].name)); found != inputs.end())
      grad_out[i] = law_view(found->second);
  const std::vector<std::int64_t> offsets = offsets_of(law, inputs);
  bound.backward(in, out, grad_out, grad_in, {offsets, run.form, run.tape, run.context});
}

/// Forward, and backward where gradients came in.
void run_both(const BoundLaw& bound, const NamedViews& inputs, Form form, Context& context, const Sizes& sizes,
              const MakeTensor& make) {
  const bool wanted = wants_gradients(inputs);
  LawTape tape;
  const NamedRun run{form, wanted ? &tape : nullptr, context};
  const LawViews out = run_forward(bound, inputs, run, sizes, make);
  if (wanted) run_backward(bound, inputs, out, run, make);
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
  Tensors made;
  run_both(*bind(call.settings), call.inputs, call.form, call.context, sizes,
           [&](const std::string& name, Type type, const std::vector<Index>& shape) {
             return law_view(made[name] = Tensor(type, shape));
           });
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
  const Sizes sizes = check_call(*law.bind(call.settings), call.inputs, call.form);
  require_finite(law, call.inputs);
  return law.run(call, sizes);
}

void require_finite(const Law& law, const NamedViews& inputs) {
  const std::string op(law.name());
  for (const auto& [name, tensor] : inputs) {
    const TensorSpec* spec = find(law.inputs(), name);
    const bool zero_decay = spec != nullptr && spec->domain == Domain::log_decay;
    if (tensor.type == Type::f32) check_values<float>(op, name, tensor, zero_decay);
    if (tensor.type == Type::f64) check_values<double>(op, name, tensor, zero_decay);
  }
}

void apply(const BoundLaw& bound, const NamedViews& inputs, Form form, Context& context, const MakeTensor& make) {
  run_both(bound, inputs, form, context, check_call(bound, inputs, form), make);
}

void forward(const BoundLaw& bound, const NamedViews& inputs, const NamedRun& run, const MakeTensor& make) {
  (void)run_forward(bound, inputs, run, check_call(bound, inputs, run.form), make);
}

void backward(const BoundLaw& bound, const NamedViews& inputs, const NamedViews& outputs, const NamedRun& run,
              const MakeTensor& make) {
  const Law& law = bound.law();
  const Sizes sizes = check_call(bound, inputs, run.form);
  const Given given = given_of(law, inputs);
  LawViews out;
  for (std::size_t i = 0; i < law.outputs().size(); ++i) {
    const TensorSpec& spec = law.outputs()[i];
    if (!bound.uses(spec.name, given)) continue;
    const auto found = outputs.find(spec.name);
    require(found != outputs.end() && found->second.dims() == shape_of(bound.axes(spec, given)[0], sizes) &&
                found->second.type == type_of_all(inputs_of(law, inputs)),
            std::string(law.name()).c_str(), "expected the output ", spec.name, " that forward() wrote");
    out[i] = law_view(found->second);
  }
  run_backward(bound, inputs, out, run, make);
}

}  // namespace isomer
