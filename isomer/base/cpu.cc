#include "isomer/base/cpu.h"

#include <cstdlib>

#include "isomer/base/error.h"

namespace isomer {

std::string_view name_of(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "scalar"; }

// Everything the translation units are compiled with (cmake/isa.cmake), but F16C: Clang 14 cannot ask for it, and it is older
// than AVX2.
bool supported(Isa isa) {
  if (isa == Isa::scalar) return true;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  if (isa == Isa::avx2) return avx2;
#ifdef ISOMER_NO_AVX512
  return false;
#else
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
}

bool multiplies_bf16(Isa isa) { return isa == Isa::avx512 && __builtin_cpu_supports("avx512bf16"); }

Isa chosen_isa() {
  const char* forced = std::getenv("ISOMER_ISA");
  Isa best = Isa::scalar;
  for (const Isa isa : kIsas) {
    if (supported(isa)) best = isa;
    if (forced == nullptr || name_of(isa) != forced) continue;
    require(supported(isa), "ISOMER_ISA", "expected an instruction set of this machine, got ", forced);
    return isa;
  }
  if (forced != nullptr && *forced != '\0') fail("ISOMER_ISA", "expected scalar, avx2 or avx512, got ", forced);
  return best;
}

}  // namespace isomer
