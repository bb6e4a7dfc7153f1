#include "isomer/laws/shapes.h"

#include <algorithm>
#include <array>

#include "isomer/laws/layout.h"

namespace isomer {

namespace {
/// Does the shape fit the sizes that are known? New letters take theirs from it.
bool fit(const Axes& axes, const std::vector<Index>& shape, Sizes& sizes) {
  if (std::size_t(axes.rank) != shape.size()) return false;
  std::array<Sizes::iterator, 4> added{};
  std::size_t count = 0, i = 0;
  for (const Letter letter : axes) {
    const auto [place, is_new] = sizes.emplace(name_of(letter), shape[i]);
    if (is_new) added[count++] = place;
    if (place->second != shape[i++]) {
      while (count > 0) sizes.erase(added[--count]);
      return false;
    }
  }
  return true;
}

/// "[B, T, H] = [2, 19, H]": known letters as numbers.
std::string expectation(const Axes& axes, const Sizes& sizes) {
  std::string letters, numbers;
  for (const Letter letter : axes) {
    const std::string_view axis = name_of(letter);
    const char* comma = letters.empty() ? "" : ", ";
    const auto size = sizes.find(axis);
    letters.append(comma).append(axis);
    numbers.append(comma).append(size == sizes.end() ? std::string(axis) : std::to_string(size->second));
  }
  return letters == numbers ? "[" + letters + "]" : "[" + letters + "] = [" + numbers + "]";
}

/// H and n follow from other letters, so tensors that have them are looked at last.
bool derived(std::span<const Axes> all) {
  return std::any_of(all.begin(), all.end(), [](const Axes& axes) { return axes.has(Letter::H) || axes.has(Letter::n); });
}

Index size_or(const Sizes& sizes, std::string_view letter, Index fallback) {
  const auto found = sizes.find(letter);
  return found == sizes.end() ? fallback : found->second;
}

/// n, and the rules of packed sequences.
Index count_sequences(const std::string& op, const TensorView* offsets, const Sizes& sizes) {
  const Index B = size_or(sizes, "B", 1), T = size_or(sizes, "T", 0), S = size_or(sizes, "S", T);
  if (offsets == nullptr) return B;
  require(offsets->rank == 1 && offsets->size() > 0, op.c_str(), "expected offsets of shape [n + 1], got ",
          text_of(offsets->dims()));
  require(S == T, op.c_str(), "expected S = T with offsets, got S = ", S, " and T = ", T);
  const auto view = offsets->view<const std::int64_t, 1>();
  std::vector<std::int64_t> dense;
  for (Index i = 0; i < view.shape[0]; ++i) dense.push_back(view(i));
  return Index(sequences(op.c_str(), B, T, dense).size());
}
}  // namespace

std::vector<Index> shape_of(const Axes& axes, const Sizes& sizes) {
  std::vector<Index> shape;
  for (const Letter letter : axes) shape.push_back(sizes.find(name_of(letter))->second);
  return shape;
}

void bind_shape(const std::string& op, const std::string& name, std::span<const Axes> alternatives,
                const std::vector<Index>& shape, Sizes& sizes) {
  std::string expected;
  for (const Axes& axes : alternatives) {
    if (fit(axes, shape, sizes)) return;
    expected += (expected.empty() ? "" : " or ") + expectation(axes, sizes);
  }
  fail(op.c_str(), "expected ", name, " of shape ", expected, ", got ", text_of(shape));
}

Sizes bind_sizes(const BoundLaw& law, const NamedViews& inputs) {
  const std::string op(law.law().name());
  const Given given = given_of(law.law(), inputs);
  const TensorView* offsets = nullptr;
  Sizes sizes;
  const auto bind = [&](bool last) {
    for (const TensorSpec& spec : law.law().inputs()) {
      const auto input = inputs.find(spec.name);
      if (input == inputs.end()) continue;
      if (spec.domain == Domain::offsets)
        offsets = &input->second;
      else if (const std::span<const Axes> axes = law.axes(spec, given); derived(axes) == last)
        bind_shape(op, input->first, axes, input->second.dims(), sizes);
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
