#pragma once
// Vec on AVX-512 (F, BW, CD, DQ, VL): 512 bits. Only by way of target.h.
#include "isomer/simd/vec_highway.h"

static_assert(HWY_TARGET == HWY_AVX3, "Highway fell back to a narrower target: see the flags in cmake/isa.cmake");
