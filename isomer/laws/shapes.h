#pragma once
// The dims of a TensorSpec ("B T H|H") against the shapes of tensors.
#include <string>
#include <string_view>
#include <vector>

#include "isomer/laws/law.h"

namespace isomer {

using Axes = std::vector<std::string_view>;

/// "B T H|H" is {{B, T, H}, {H}}.
[[nodiscard]] std::vector<Axes> alternatives(std::string_view dims);

/// The shape with these sizes; every letter must be known.
[[nodiscard]] std::vector<Index> shape_of(const Axes& axes, const Sizes& sizes);

/// Sizes by letter, bound by the inputs' shapes. Throws Error naming the tensor, the shape expected and the one found.
[[nodiscard]] Sizes bind_sizes(const Law& law, const Tensors& inputs);

/// Throws Error unless the tensor has one of the spec's shapes. Letters that are new take their size from the tensor.
void bind_shape(const std::string& op, const std::string& name, std::string_view dims, const Tensor& tensor, Sizes& sizes);

}  // namespace isomer
