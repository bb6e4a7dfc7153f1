#pragma once
// The axes of a TensorSpec against the shapes of tensors.
#include <string>
#include <string_view>
#include <vector>

#include "isomer/laws/bound_law.h"

namespace isomer {

/// The shape with these sizes; every letter must be known.
[[nodiscard]] std::vector<Index> shape_of(const Axes& axes, const Sizes& sizes);

/// Sizes by letter, bound by the inputs' shapes. Throws Error naming the tensor, the shape expected and the one found.
[[nodiscard]] Sizes bind_sizes(const BoundLaw& bound, const NamedViews& inputs);

/// Throws Error unless the shape is one of the alternatives. Letters that are new take their size from it.
void bind_shape(const std::string& op, const std::string& name, std::span<const Axes> alternatives,
                const std::vector<Index>& shape, Sizes& sizes);

}  // namespace isomer
