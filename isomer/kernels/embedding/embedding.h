#pragma once
// Rows of a table by number, and the sum of their gradients.
//
//   embedding<float>(ids, table, y, context);                                  // y[b, t, 0] = table[ids[b, t]]
//   embedding_vjp<float>(ids, dy, dtable, Accumulate::add, context);           // dtable[ids[b, t]] += dy[b, t, 0]
//
// ids [B, T] in [0, V), table [V, D], y [B, T, 1, D]; any strides, a dense last axis fast; nothing overlaps. A row's gradients
// are added in the order of the tokens, in T over 64 of them and in double beyond, whatever the number of threads. Scratch of the
// gradient: V + B·T numbers.
#include <cstdint>

#include "isomer/base/context.h"
#include "isomer/base/view.h"
#include "isomer/kernels/accumulate.h"

namespace isomer {

/// W is T or, for float, Bf16 or F16, which are widened.
template <class T, class W>
void embedding(View<const std::int64_t, 2> ids, View<const W, 2> table, View<T, 4> y, Context& context);

template <class T>
void embedding_vjp(View<const std::int64_t, 2> ids, View<const T, 4> dy, View<T, 2> dtable, Accumulate accumulate,
                   Context& context);

}  // namespace isomer
