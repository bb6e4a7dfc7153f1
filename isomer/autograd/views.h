#pragma once
// The same memory seen otherwise: nothing is copied, forward or backward.
#include <span>

#include "isomer/autograd/tape.h"

namespace isomer::ops {

/// [B, T, G, D] as [B, T, heads, G·D / heads]; the last two axes must be dense unless heads = G.
template <class T>
[[nodiscard]] Var<T> heads(Var<T> x, Index heads);

/// Pieces of the last axis of `x` [B, T, H, D], of these sizes (their sum is D), into `pieces`. x itself is not to be used after.
template <class T>
void split(Tape<T>& tape, Var<T> x, std::span<const Index> sizes, std::span<Var<T>> pieces);

/// Channels begin … begin + size − 1 of the last axis. Slices may overlap and leave things out; where they do not, split() is
/// cheaper: the gradient of what is sliced starts as zeros, and every use adds to it.
template <class T>
[[nodiscard]] Var<T> slice(Var<T> x, Index begin, Index size);

/// The same value, from which no gradient goes back.
template <class T>
[[nodiscard]] Var<T> detach(Tape<T>& tape, Var<T> x);

}  // namespace isomer::ops
