#pragma once
// The same memory seen otherwise: nothing is copied, forward or backward.
#include <span>

#include "isomer/autograd/tape.h"

namespace isomer {

/// [B, T, G, D] as [B, T, heads, G·D / heads]; the last two axes must be dense.
template <class T>
[[nodiscard]] Var<T> heads(Var<T> x, Index heads);

/// Pieces of the last axis of `x` [B, T, H, D], of these sizes (their sum is D), into `pieces`. x itself is not to be used after.
template <class T>
void split(Tape<T>& tape, Var<T> x, std::span<const Index> sizes, std::span<Var<T>> pieces);

}  // namespace isomer
