// isomer apply: a law on the tensors of a safetensors file.
#include <algorithm>

#include "cli/command.h"
#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"
#include "isomer/laws/law.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string law, inputs, output, form = "auto";
  int threads = 0;
  std::vector<std::string> set;
};

/// Every floating input of a call with gradients has one in the file: of scales and counts, which are no variables, zeros.
void add_zero_gradients(const Law& law, const Tensors& inputs, Tensors& outputs) {
  for (const TensorSpec& spec : law.inputs()) {
    const auto given = inputs.find(std::string(spec.name));
    if (given == inputs.end() || differentiable(spec.domain) || !floating(given->second.type())) continue;
    Tensor zeros(given->second.type(), given->second.shape());
    std::fill_n(zeros.bytes(), zeros.size() * bytes_of(zeros.type()), std::byte{0});
    outputs["grad_" + given->first] = std::move(zeros);
  }
}

int apply_request(const Request& request) {
  if (request.law.empty()) throw Error("expected a law, got none");
  const Law& law = find_law(request.law);
  if (request.inputs.empty()) throw Error("expected --inputs FILE, got none");
  if (request.output.empty()) throw Error("expected --output FILE, got none");
  const Form form = form_named(request.form);
  const Settings settings = settings_of(request.set);
  Tensors inputs = read_safetensors(request.inputs);
  // Types of storage are computed with in F32.
  for (auto& [name, tensor] : inputs)
    if (floating(tensor.type()) && !computable(tensor.type())) tensor = tensor.cast(Type::f32);
  Context context(request.threads);
  Tensors outputs = apply(law, {inputs, settings, form, context});
  if (wants_gradients(inputs)) add_zero_gradients(law, inputs, outputs);
  try {
    write_safetensors(request.output, outputs);
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
  return kDone;
}

/// "q [B T Gq K], k [B T Gk K], [offsets [n+1]]": those that a call may leave out in brackets.
std::string describe(std::span<const TensorSpec> tensors, bool optional) {
  std::string text;
  for (const TensorSpec& spec : tensors) {
    std::string one = std::string(spec.name) + " [" + std::string(spec.dims) + "]";
    if (const std::size_t bar = one.find('|'); bar != std::string::npos) one.replace(bar, 1, "] or [");
    text += (text.empty() ? "" : ", ") + (spec.required || !optional ? one : "[" + one + "]");
  }
  return text;
}

std::string describe_laws() {
  std::string text =
      "Laws, their tensors (in brackets: may be left out; an output is there where the options have it) and options:\n";
  for (const Law* law : laws()) {
    text.append("  ").append(law->name()).append("   ").append(law->equation()).append("\n");
    text.append("    inputs   ").append(describe(law->inputs(), true)).append("\n");
    text.append("    outputs  ").append(describe(law->outputs(), false)).append("\n");
    for (const OptionSpec& option : law->options())
      text.append("    ").append(option.name).append("=").append(option.fallback).append("   ").append(option.help).append("\n");
  }
  text +=
      "B batch, T tokens, S keys, Gq Gk Gv heads of q, k, v, H the largest of them, K key size, V value size, N state size,\n"
      "C channels, n sequences: B, or those that offsets packs into one row\n";
  return text;
}
}  // namespace

Command apply_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("LAW", request->law, "Which law");
  options.add("--inputs", request->inputs, "The tensors, a safetensors file").value("FILE");
  options.add("--output", request->output, "Where outputs and gradients go, a safetensors file").value("FILE");
  options.add("--form", request->form, "auto, reference, step, chunk or parallel").value("FORM");
  options.threads(request->threads);
  options.set(request->set, "An option of the law; may be repeated");
  options.footer(describe_laws() +
                 "\nGradients are computed when the file holds grad_o (of scan: grad_h) or grad_final_….\n"
                 "Example:\n  isomer apply attention --inputs qkv.safetensors --output o.safetensors --set window=256");
  return [request] { return apply_request(*request); };
}

}  // namespace isomer::cli
