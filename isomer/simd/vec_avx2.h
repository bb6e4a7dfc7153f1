#pragma once
// Vec on AVX2 + FMA: 256 bits. Only by way of target.h.
#include "isomer/simd/vec_highway.h"

static_assert(HWY_TARGET == HWY_AVX2, "Highway fell back to a narrower target: see the flags in cmake/isa.cmake");
