#pragma once
// Vec on AVX-512 (F, BW, CD, DQ, VL): 512 bits. Only for translation units named *_avx512.cc (flags in cmake/isa.cmake).
#include "isomer/simd/vec_highway.h"

static_assert(HWY_TARGET == HWY_AVX3, "Highway fell back to a narrower target: see the flags in cmake/isa.cmake");
