#pragma once
// Rows of a table by number as an op (kernels/embedding).
#include <cstdint>

#include "isomer/autograd/tape.h"

namespace isomer::ops {

/// ids [B, T] below V, table [1, 1, V, D] → [B, T, 1, D]. The ids are copied.
template <class T>
[[nodiscard]] Var<T> embedding(Tape<T>& tape, View<const std::int64_t, 2> ids, Var<T> table);

}  // namespace isomer::ops
