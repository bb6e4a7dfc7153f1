#pragma once
// with_isa of base/cpu.h for the kernels of laws, which AVX-512 has in float only: double is there to check gradients, its
// kernels of AVX2 do that, and the others would be a tenth of the time that compiling the library takes.
//
//   with_law_isa<T>(context.isa(), [&]<Isa I>() { LawKernels<T, I>::step(x, y, n); });
#include <utility>

#include "isomer/base/cpu.h"

namespace isomer {

template <class T, class F>
decltype(auto) with_law_isa(Isa isa, F&& f) {
  if constexpr (sizeof(T) == 4) {
    return with_isa(isa, std::forward<F>(f));
  } else {
    if (isa == Isa::scalar) return std::forward<F>(f).template operator()<Isa::scalar>();
    return std::forward<F>(f).template operator()<Isa::avx2>();
  }
}

}  // namespace isomer
