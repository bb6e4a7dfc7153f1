#include "isomer/base/cpu.h"

#include <cstdlib>

#include "isomer/base/error.h"

namespace isomer {

std::string_view name_of(Isa isa) { return isa == Isa::avx2 ? "avx2" : "scalar"; }

bool supported(Isa isa) {
  if (isa == Isa::scalar) return true;
  // Everything the AVX2 translation units are compiled with (cmake/isa.cmake), but F16C: Clang 14 cannot ask for it, and it is
  // older than AVX2.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}

Isa chosen_isa() {
  const char* forced = std::getenv("ISOMER_ISA");
  if (forced == nullptr || *forced == '\0') return supported(Isa::avx2) ? Isa::avx2 : Isa::scalar;
  for (Isa isa : {Isa::scalar, Isa::avx2}) {
    if (name_of(isa) != forced) continue;
    require(supported(isa), "ISOMER_ISA", "expected an instruction set of this machine, got ", forced);
    return isa;
  }
  fail("ISOMER_ISA", "expected scalar or avx2, got ", forced);
}

}  // namespace isomer
