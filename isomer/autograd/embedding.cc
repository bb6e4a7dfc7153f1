#include "isomer/autograd/embedding.h"

#include "isomer/autograd/op_views.h"
#include "isomer/kernels/embedding/embedding.h"

namespace isomer::ops {

template <class T>
Var<T> embedding(Tape<T>& tape, View<const std::int64_t, 2> ids, Var<T> table) {
  const Index B = ids.shape[0], L = ids.shape[1];
  const Var<T> y = tape.make({B, L, 1, table.dim(3)}, {table});
  table.with_numbers([&](auto numbers) { embedding<T>(ids, matrix(numbers), y.value, tape.context()); });
  if (!y.wanted()) return y;
  const View<std::int64_t, 2> kept = contiguous(tape.template keep<std::int64_t>(B * L), {B, L});
  for (Index b = 0; b < B; ++b)
    for (Index t = 0; t < L; ++t) kept(b, t) = ids(b, t);
  tape.record({y}, [=](Tape<T>& back) {
    const auto dtable = back.target(table);
    embedding_vjp<T>(kept, back.arrived(y), matrix(dtable.view), dtable.mode, back.context());
  });
  return y;
}

template Var<float> embedding(Tape<float>&, View<const std::int64_t, 2>, Var<float>);
template Var<double> embedding(Tape<double>&, View<const std::int64_t, 2>, Var<double>);

}  // namespace isomer::ops
