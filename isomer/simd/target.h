#pragma once
// The instruction set that a translation unit is compiled for, and its vectors. The build compiles every *_isa.cc once for each
// instruction set, with its flags and with ISOMER_TARGET_ISA, the number of the Isa (cmake/isa.cmake).
//
//   #include "isomer/simd/target.h"
//   // The vectors first: conv_impl.h is written over them.
//   #include "isomer/kernels/conv/conv_impl.h"
//   template struct isomer::ConvKernels<float, isomer::kTarget>;
#ifndef ISOMER_TARGET_ISA
#error "ISOMER_TARGET_ISA: expected 0, 1 or 2 from the build, got nothing: is the file named *_isa.cc?"
#elif ISOMER_TARGET_ISA == 0
#include "isomer/simd/vec_scalar.h"
#elif ISOMER_TARGET_ISA == 1
#include "isomer/simd/vec_avx2.h"
#else
#include "isomer/simd/vec_avx512.h"
#endif

namespace isomer {

inline constexpr Isa kTarget = Isa(ISOMER_TARGET_ISA);

}  // namespace isomer
