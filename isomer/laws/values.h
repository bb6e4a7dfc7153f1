#pragma once
// Values of a layer, [B, T, heads, size], as the tensors of a law: which axes they are meant as, and how they are repeated.
//
// Batch and tokens are the first two axes. Two more letters of a spec are heads and size; a single one may stand in either of
// them or fill both. A value may be the same for all sequences, tokens or heads (size 1 in that axis), and a single letter for
// all of its numbers. States ("n …") have their last axes last.
#include "isomer/laws/bound_law.h"

namespace isomer {

using ValueShape = std::array<Index, 4>;
/// By the places of the law's inputs; those of absent ones do not matter.
using ValueShapes = std::array<ValueShape, kMostTensors>;

/// `sequences`: the number of packed ones, or −1.
[[nodiscard]] LawSizes sizes_of(const BoundLaw& law, Given given, const ValueShapes& shapes, Index sequences = -1);

/// The axes that a value of this shape is meant as. Throws Error when none fit.
[[nodiscard]] const Axes& axes_of_value(const BoundLaw& law, Given given, const TensorSpec& spec, const ValueShape& shape,
                                        const LawSizes& sizes);

/// Throws Error unless the value fits one of the spec's alternatives, also where there is one only: for those who have no data
/// yet.
void require_value(const BoundLaw& law, Given given, const TensorSpec& spec, const ValueShape& shape, const LawSizes& sizes);

/// The shape to which the value is repeated.
[[nodiscard]] ValueShape repeated(const Axes& axes, const ValueShape& shape, const LawSizes& sizes);

/// The shape of a tensor with these axes as a value.
[[nodiscard]] ValueShape value_shape(const Axes& axes, const LawSizes& sizes);

/// The value, repeated, as the law's tensor.
[[nodiscard]] LawView tensor_of_value(const LawView& value, const Axes& axes);

/// The outputs that are the value of a layer: those of every token with a gradient, side by side in the last axis.
[[nodiscard]] bool is_value(const BoundLaw& law, Given given, const TensorSpec& output);
[[nodiscard]] ValueShape output_shape(const BoundLaw& law, Given given, const LawSizes& sizes);

}  // namespace isomer
