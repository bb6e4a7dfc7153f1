#pragma once
// Random words one after the other.
#include "isomer/base/rng.h"
#include "isomer/kernels/dropout/dropout_kernels.h"

namespace isomer {

template <Isa I>
void PhiloxKernels<I>::words(const DropoutMask& mask, std::uint64_t block, std::uint32_t* words) noexcept {
  for (std::uint64_t i = block; i < block + kPhiloxLanes; ++i)
    for (const std::uint32_t word :
         philox({std::uint32_t(i), std::uint32_t(i >> 32), std::uint32_t(mask.stream), std::uint32_t(mask.stream >> 32)},
                {std::uint32_t(mask.seed), std::uint32_t(mask.seed >> 32)}))
      *words++ = word;
}

}  // namespace isomer
