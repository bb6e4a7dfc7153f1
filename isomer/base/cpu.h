#pragma once
// Which instruction set the kernels use. Decided at run time, forced with ISOMER_ISA=scalar|avx2.
//
// A kernel is a template over Isa, instantiated in one translation unit for each Isa (x_scalar.cc, x_avx2.cc) and called by
//   with_isa(context.isa(), [&]<Isa I>() { kernel<float, I>(…); });
#include <string_view>
#include <utility>

namespace isomer {

enum class Isa { scalar, avx2 };

[[nodiscard]] std::string_view name_of(Isa isa);
/// Can this machine run it?
[[nodiscard]] bool supported(Isa isa);
/// The one forced by ISOMER_ISA, else the best supported. Throws Error when the forced one is unknown or unsupported.
[[nodiscard]] Isa chosen_isa();

template <class F>
decltype(auto) with_isa(Isa isa, F&& f) {
  if (isa == Isa::avx2) return std::forward<F>(f).template operator()<Isa::avx2>();
  return std::forward<F>(f).template operator()<Isa::scalar>();
}

}  // namespace isomer
