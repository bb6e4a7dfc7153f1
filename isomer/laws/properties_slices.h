#pragma once
// For the property suite: cuts the tensors of a call along time, and puts the pieces of its results together again.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/laws/shapes.h"

namespace isomer::properties {

[[nodiscard]] inline Tensors clone(const Tensors& all) {
  Tensors copy;
  for (const auto& [name, x] : all) copy.emplace(name, x.clone());
  return copy;
}

[[nodiscard]] inline double number_at(const Tensor& x, Index i) {
  return x.type() == Type::f32 ? double(x.data<float>()[i]) : x.data<double>()[i];
}
inline void set_number(const Tensor& x, Index i, double value) {
  if (x.type() == Type::f32)
    x.data<float>()[i] = float(value);
  else
    x.data<double>()[i] = value;
}

/// The spec of an input or output, of a grad_… too, or null.
[[nodiscard]] inline const TensorSpec* spec_of(const Law& law, std::string_view name) {
  if (name.starts_with("grad_")) name.remove_prefix(5);
  for (const auto specs : {law.inputs(), law.outputs()})
    for (const TensorSpec& spec : specs)
      if (spec.name == name) return &spec;
  return nullptr;
}

/// A tensor as [outer, tokens, inner]. `axis` is the letter of the tokens, T or S; a tensor without one is all outer.
struct Layout {
  char axis = 0;
  Index outer = 1, tokens = 1, inner = 1;
};

[[nodiscard]] inline Layout layout_of(const Law& law, const std::string& name, const Tensor& x) {
  const TensorSpec* spec = spec_of(law, name);
  if (spec == nullptr) return {.outer = x.size()};
  for (const Axes& axes : spec->all()) {
    if (std::size_t(axes.rank) != x.shape().size()) continue;
    Layout layout;
    for (std::size_t i = 0; i < std::size_t(axes.rank); ++i) {
      const bool tokens = axes.letters[i] == Letter::T || axes.letters[i] == Letter::S;
      if (tokens) layout.axis = name_of(axes.letters[i])[0];
      (tokens ? layout.tokens : layout.axis != 0 ? layout.inner : layout.outer) *= x.shape()[i];
    }
    return layout;
  }
  return {.outer = x.size()};
}

/// Tokens begin … end − 1.
[[nodiscard]] inline Tensor slice(const Tensor& x, const Layout& layout, Index begin, Index end) {
  std::vector<Index> shape = x.shape();
  for (Index& size : shape)
    if (layout.axis != 0 && &size == &shape[1]) size = end - begin;  // tokens are the second axis everywhere
  Tensor part(x.type(), shape);
  const Index row = layout.inner * bytes_of(x.type());
  for (Index i = 0; i < layout.outer && end > begin; ++i)
    std::memcpy(part.bytes() + i * (end - begin) * row, x.bytes() + (i * layout.tokens + begin) * row,
                std::size_t((end - begin) * row));
  return part;
}

/// whole[tokens at …] += part, in double.
inline void add_slice(const Tensor& whole, const Layout& layout, const Tensor& part, Index at) {
  const Index count = part.size() / std::max<Index>(1, layout.outer * layout.inner);
  for (Index i = 0; i < layout.outer; ++i)
    for (Index j = 0; j < count * layout.inner; ++j)
      whole.data<double>()[(i * layout.tokens + at) * layout.inner + j] += number_at(part, i * count * layout.inner + j);
}

[[nodiscard]] inline Tensor zeros(const std::vector<Index>& shape) {
  Tensor x(Type::f64, shape);
  std::fill_n(x.data<double>(), x.size(), 0.0);
  return x;
}

/// The offsets of tokens begin … end − 1: every sequence keeps its place, those outside become empty.
[[nodiscard]] inline Tensor clip(const Tensor& offsets, Index begin, Index end) {
  Tensor part = offsets.clone();
  for (std::int64_t* o = part.data<std::int64_t>(); o != part.data<std::int64_t>() + part.size(); ++o)
    *o = std::clamp<std::int64_t>(*o, begin, end) - begin;
  return part;
}

/// The size of an axis, taken from the inputs that have it.
[[nodiscard]] inline Index tokens_of(const Law& law, const Tensors& inputs, char axis) {
  for (const auto& [name, x] : inputs)
    if (const Layout layout = layout_of(law, name, x); layout.axis == axis) return layout.tokens;
  return 0;
}

/// Where the keys of tokens begin … end − 1 lie: packed sequences have theirs; else all keys up to the last token are seen.
struct KeyRange {
  Index begin, end;
};
[[nodiscard]] inline KeyRange keys_of(const Law& law, const Tensors& inputs, Index begin, Index end) {
  if (inputs.contains("offsets")) return {begin, end};
  return {0, tokens_of(law, inputs, 'S') - tokens_of(law, inputs, 'T') + end};
}

/// The call on tokens begin … end − 1, without states and their gradients: those are carried.
[[nodiscard]] inline Tensors cut(const Law& law, const Tensors& inputs, Index begin, Index end) {
  const KeyRange keys = keys_of(law, inputs, begin, end);
  Tensors part;
  for (const auto& [name, x] : inputs) {
    if (name.starts_with("initial_") || name.starts_with("grad_final_")) continue;
    const Layout layout = layout_of(law, name, x);
    if (name == "offsets")
      part.emplace(name, clip(x, begin, end));
    else if (layout.axis == 'T')
      part.emplace(name, slice(x, layout, begin, end));
    else if (layout.axis == 'S')
      part.emplace(name, slice(x, layout, keys.begin, keys.end));
    else
      part.emplace(name, x.clone());
  }
  return part;
}

}  // namespace isomer::properties
