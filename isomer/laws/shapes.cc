#include "isomer/laws/shapes.h"

#include <algorithm>
#include <optional>

#include "isomer/laws/layout.h"

namespace isomer {

namespace {
Axes words(std::string_view text) {
  Axes all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

/// The sizes with the new letters of the shape, or nothing when it does not fit.
std::optional<Sizes> fit(const Axes& axes, const std::vector<Index>& shape, const Sizes& known) {
  if (axes.size() != shape.size()) return {};
  Sizes sizes = known;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (sizes.emplace(axes[i], shape[i]).first->second != shape[i]) return {};
  return sizes;
}

/// "[B, T, H] = [2, 19, H]": known letters as numbers.
std::string expectation(const Axes& axes, const Sizes& sizes) {
  std::string letters, numbers;
  for (std::string_view axis : axes) {
    const char* comma = letters.empty() ? "" : ", ";
    const auto size = sizes.find(axis);
    letters.append(comma).append(axis);
    numbers.append(comma).append(size == sizes.end() ? std::string(axis) : std::to_string(size->second));
  }
  return letters == numbers ? "[" + letters + "]" : "[" + letters + "] = [" + numbers + "]";
}

/// H and n follow from other letters, so tensors that have them are looked at last.
bool derived(std::string_view dims) {
  const auto all = alternatives(dims);
  return std::any_of(all.begin(), all.end(), [](const Axes& axes) {
    return std::any_of(axes.begin(), axes.end(), [](std::string_view a) { return a == "H" || a == "n"; });
  });
}

Index size_or(const Sizes& sizes, std::string_view letter, Index fallback) {
  const auto found = sizes.find(letter);
  return found == sizes.end() ? fallback : found->second;
}

/// n, and the rules of packed sequences.
Index count_sequences(const std::string& op, const Tensor* offsets, const Sizes& sizes) {
  const Index B = size_or(sizes, "B", 1), T = size_or(sizes, "T", 0), S = size_or(sizes, "S", T);
  if (offsets == nullptr) return B;
  require(offsets->shape().size() == 1 && offsets->size() > 0, op.c_str(), "expected offsets of shape [n + 1], got ",
          text_of(offsets->shape()));
  require(S == T, op.c_str(), "expected S = T with offsets, got S = ", S, " and T = ", T);
  return Index(sequences(op.c_str(), B, T, {offsets->data<std::int64_t>(), std::size_t(offsets->size())}).size());
}
}  // namespace

std::vector<Axes> alternatives(std::string_view dims) {
  std::vector<Axes> all;
  for (;;) {
    const std::size_t end = dims.find('|');
    all.push_back(words(dims.substr(0, end)));
    if (end == std::string_view::npos) return all;
    dims.remove_prefix(end + 1);
  }
}

std::vector<Index> shape_of(const Axes& axes, const Sizes& sizes) {
  std::vector<Index> shape;
  for (std::string_view axis : axes) shape.push_back(sizes.find(axis)->second);
  return shape;
}

void bind_shape(const std::string& op, const std::string& name, std::string_view dims, const Tensor& tensor, Sizes& sizes) {
  std::string expected;
  for (const Axes& axes : alternatives(dims)) {
    if (auto bound = fit(axes, tensor.shape(), sizes)) {
      sizes = std::move(*bound);
      return;
    }
    expected += (expected.empty() ? "" : " or ") + expectation(axes, sizes);
  }
  fail(op.c_str(), "expected ", name, " of shape ", expected, ", got ", text_of(tensor.shape()));
}

Sizes bind_sizes(const Law& law, const Tensors& inputs) {
  const std::string op(law.name());
  const Tensor* offsets = nullptr;
  Sizes sizes;
  const auto bind = [&](bool last) {
    for (const TensorSpec& spec : law.inputs()) {
      const auto input = inputs.find(spec.name);
      if (input == inputs.end()) continue;
      if (spec.domain == Domain::offsets)
        offsets = &input->second;
      else if (const std::string_view dims = law.dims(spec, inputs); derived(dims) == last)
        bind_shape(op, input->first, dims, input->second, sizes);
    }
  };
  bind(false);
  // An empty head, or none, has no meaning; an empty batch or sequence has.
  for (const char* letter : {"K", "V", "N", "C"})
    require(size_or(sizes, letter, 1) > 0, op.c_str(), "expected ", letter, " >= 1, got 0");
  if (sizes.contains("Gq")) sizes["H"] = common_heads(op.c_str(), sizes["Gq"], size_or(sizes, "Gk", 1), size_or(sizes, "Gv", 1));
  sizes["n"] = count_sequences(op, offsets, sizes);
  bind(true);
  return sizes;
}

}  // namespace isomer
