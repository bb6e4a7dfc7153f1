#include "isomer/laws/values.h"

#include <algorithm>

#include "isomer/base/error.h"

namespace isomer {

namespace {
/// The letters of a tensor behind batch and tokens.
struct Parts {
  bool batch = false, tokens = false;
  std::array<Letter, 4> rest{};
  std::size_t count = 0;

  explicit Parts(const Axes& axes) {
    for (const Letter letter : axes) {
      if (letter == Letter::B || letter == Letter::n)
        batch = true;
      else if (letter == Letter::T || letter == Letter::S)
        tokens = true;
      else
        rest[count++] = letter;
    }
  }
};

bool heads_of_a_group(Letter letter) { return letter == Letter::Gq || letter == Letter::Gk || letter == Letter::Gv; }
bool one_or(Index size, Index wanted) { return size == 1 || size == wanted; }

/// May n numbers stand in the last two axes?
bool holds(const ValueShape& shape, Index n) {
  return (shape[3] == 1 && one_or(shape[2], n)) || (shape[2] == 1 && one_or(shape[3], n)) || shape[2] * shape[3] == n;
}

bool fits(const Axes& axes, const ValueShape& shape, const LawSizes& sizes) {
  const Parts parts(axes);
  for (const Letter letter : axes) {
    if (letter == Letter::B || letter == Letter::n) {
      if (!one_or(shape[0], sizes[letter])) return false;
    } else if ((letter == Letter::T || letter == Letter::S) && !one_or(shape[1], sizes[letter])) {
      return false;
    }
  }
  if ((!parts.batch && shape[0] != 1) || (!parts.tokens && parts.count < 3 && shape[1] != 1)) return false;
  if (parts.count == 0) return shape[2] * shape[3] == 1;
  if (parts.count == 1) return holds(shape, sizes[parts.rest[0]]);
  const std::size_t first = 4 - parts.count;
  for (std::size_t i = 0; i < parts.count; ++i) {
    const bool heads = i == 0 && parts.count == 2;
    const Index size = sizes[parts.rest[i]];
    if (heads ? !one_or(shape[first], size) : shape[first + i] != size) return false;
  }
  return true;
}

/// A size that one value says: those of size 1 may be repeated.
void learn(Index& size, Index said) {
  if (size < 0 || size == 1) size = said;
}

std::string text(const Axes& axes, const LawSizes& sizes) {
  std::string letters, numbers;
  for (const Letter letter : axes) {
    letters.append(letters.empty() ? "" : ", ").append(name_of(letter));
    numbers.append(numbers.empty() ? "" : ", ").append(std::to_string(sizes[letter]));
  }
  return "[" + letters + "] = [" + numbers + "]";
}

[[noreturn]] void fail_to_fit(const BoundLaw& law, Given given, const TensorSpec& spec, const ValueShape& shape,
                              const LawSizes& sizes) {
  std::string expected;
  for (const Axes& axes : law.axes(spec, given)) expected += (expected.empty() ? "" : " or ") + text(axes, sizes);
  fail(std::string(law.law().name()).c_str(), "expected ", spec.name, " for ", expected, ", got a value [", shape[0], ", ",
       shape[1], ", ", shape[2], ", ", shape[3], "]");
}
}  // namespace

LawSizes sizes_of(const BoundLaw& law, Given given, const ValueShapes& shapes, Index sequences) {
  LawSizes sizes;
  for (std::size_t i = 0; i < kLetters.size(); ++i) sizes[Letter(i)] = -1;
  const std::span<const TensorSpec> specs = law.law().inputs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!given[i] || specs[i].domain == Domain::offsets) continue;
    const Axes& axes = law.axes(specs[i], given)[0];
    if (axes.has(Letter::H) || axes.has(Letter::n)) continue;
    const Parts parts(axes);
    for (const Letter letter : axes) {
      if (letter == Letter::B) learn(sizes.B, shapes[i][0]);
      if (letter == Letter::T || letter == Letter::S) learn(sizes[letter], shapes[i][1]);
    }
    if (parts.count == 1) learn(sizes[parts.rest[0]], shapes[i][2] * shapes[i][3]);
    for (std::size_t j = 0; parts.count == 2 && j < 2; ++j) learn(sizes[parts.rest[j]], shapes[i][2 + j]);
  }
  // A size that stands beside the heads alone.
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!given[i] || specs[i].domain == Domain::offsets) continue;
    const Parts parts(law.axes(specs[i], given)[0]);
    if (parts.count == 2 && parts.rest[0] == Letter::H && sizes[parts.rest[1]] < 0) sizes[parts.rest[1]] = shapes[i][3];
  }
  sizes.H = std::max({sizes.Gq, sizes.Gk, sizes.Gv});
  if (sizes.S < 0) sizes.S = sizes.T;
  sizes.n = sequences >= 0 ? sequences : sizes.B;
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    if (sizes[Letter(i)] < 0) sizes[Letter(i)] = 1;
  return sizes;
}

const Axes& axes_of_value(const BoundLaw& law, Given given, const TensorSpec& spec, const ValueShape& shape,
                          const LawSizes& sizes) {
  const std::span<const Axes> all = law.axes(spec, given);
  // What a single way expects is for the law to check, but for numbers that stand in neither axis.
  if (all.size() == 1 && (Parts(all[0]).count != 1 || fits(all[0], shape, sizes))) return all[0];
  for (const Axes& axes : all)
    if (fits(axes, shape, sizes)) return axes;
  fail_to_fit(law, given, spec, shape, sizes);
}

void require_value(const BoundLaw& law, Given given, const TensorSpec& spec, const ValueShape& shape, const LawSizes& sizes) {
  const std::span<const Axes> all = law.axes(spec, given);
  if (std::ranges::none_of(all, [&](const Axes& axes) { return fits(axes, shape, sizes); }))
    fail_to_fit(law, given, spec, shape, sizes);
}

ValueShape repeated(const Axes& axes, const ValueShape& shape, const LawSizes& sizes) {
  const Parts parts(axes);
  ValueShape to = shape;
  for (const Letter letter : axes) {
    if (letter == Letter::B || letter == Letter::n) to[0] = sizes[letter];
    if (letter == Letter::T || letter == Letter::S) to[1] = sizes[letter];
  }
  if (parts.count == 2 && !heads_of_a_group(parts.rest[0])) to[2] = sizes[parts.rest[0]];
  if (parts.count == 1) {
    const Index n = sizes[parts.rest[0]];
    const bool third = shape[3] == 1;
    to[2] = third ? n : 1;
    to[3] = third ? 1 : n;
  }
  return to;
}

ValueShape value_shape(const Axes& axes, const LawSizes& sizes) {
  const Parts parts(axes);
  ValueShape shape{1, 1, 1, 1};
  for (const Letter letter : axes) {
    if (letter == Letter::B || letter == Letter::n) shape[0] = sizes[letter];
    if (letter == Letter::T || letter == Letter::S) shape[1] = sizes[letter];
  }
  for (std::size_t i = 0; i < parts.count; ++i) shape[4 - parts.count + i] = sizes[parts.rest[i]];
  return shape;
}

LawView tensor_of_value(const LawView& value, const Axes& axes) {
  const Parts parts(axes);
  LawView tensor{.data = value.data, .type = value.type};
  const auto take = [&](std::size_t axis) {
    tensor.shape[std::size_t(tensor.rank)] = value.shape[axis];
    tensor.stride[std::size_t(tensor.rank++)] = value.stride[axis];
  };
  if (parts.batch) take(0);
  if (parts.tokens) take(1);
  if (parts.count == 1)
    take(value.shape[3] == 1 ? 2 : 3);
  else
    for (std::size_t i = 0; i < parts.count; ++i) take(4 - parts.count + i);
  return tensor;
}

bool is_value(const BoundLaw& law, Given given, const TensorSpec& output) {
  return output.axes[0].has(Letter::T) && differentiable(output.domain) && law.uses(output.name, given);
}

ValueShape output_shape(const BoundLaw& law, Given given, const LawSizes& sizes) {
  ValueShape all{0, 0, 0, 0};
  for (const TensorSpec& spec : law.law().outputs()) {
    if (!is_value(law, given, spec)) continue;
    const ValueShape own = value_shape(law.axes(spec, given)[0], sizes);
    const Index before = all[3];
    all = own;
    all[3] += before;
  }
  return all;
}

}  // namespace isomer
