#pragma once
// Which instruction set the kernels use. Decided at run time, forced with ISOMER_ISA=scalar|avx2|avx512.
//
// A kernel is a template over Isa, instantiated in x_isa.cc, which the build compiles for each Isa, and called by
//   with_isa(context.isa(), [&]<Isa I>() { kernel<float, I>(x, y, n); });
#include <string_view>
#include <utility>

namespace isomer {

enum class Isa { scalar, avx2, avx512 };
/// From the plainest to the best.
inline constexpr Isa kIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512};

[[nodiscard]] std::string_view name_of(Isa isa);
/// Can this machine run it, and does this build have it? One with ISOMER_NO_AVX512 has no AVX-512.
[[nodiscard]] bool supported(Isa isa);
/// Does this machine multiply pairs of bf16 (AVX512-BF16), where it runs this instruction set?
[[nodiscard]] bool multiplies_bf16(Isa isa);
/// The one forced by ISOMER_ISA, else the best supported. Throws Error when the forced one is unknown or unsupported.
[[nodiscard]] Isa chosen_isa();

template <class F>
decltype(auto) with_isa(Isa isa, F&& f) {
#ifndef ISOMER_NO_AVX512
  if (isa == Isa::avx512) return std::forward<F>(f).template operator()<Isa::avx512>();
#endif
  if (isa == Isa::avx2) return std::forward<F>(f).template operator()<Isa::avx2>();
  return std::forward<F>(f).template operator()<Isa::scalar>();
}

}  // namespace isomer
