#pragma once
// Vec on AVX2 + FMA: 256 bits. Only for translation units named *_avx2.cc (flags in cmake/isa.cmake).
#include "isomer/simd/vec_highway.h"

static_assert(HWY_TARGET == HWY_AVX2, "Highway fell back to a narrower target: see the flags in cmake/isa.cmake");
