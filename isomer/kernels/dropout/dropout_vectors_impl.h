#pragma once
// Random words by vectors of 256 bits, whatever the widest are: a product of 32 bits is not what dropout waits for.
#include <hwy/highway.h>

#include "isomer/kernels/dropout/dropout_impl.h"

namespace isomer {

namespace internal {
namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::FixedTag<std::uint32_t, kPhiloxLanes>;
using Pairs = hn::FixedTag<std::uint64_t, kPhiloxLanes / 2>;
using Lanes = hn::Vec<Pairs>;

/// A number of 32 bits in every lane; what stands above it is never read.
HWY_INLINE Lanes times(Lanes a, std::uint32_t m) { return hn::MulEven(hn::BitCast(Words(), a), hn::Set(Words(), m)); }
HWY_INLINE Lanes all(std::uint64_t x) { return hn::Set(Pairs(), x); }

/// philox() of base/rng.h, a block in each lane.
struct State {
  Lanes c0, c1, c2, c3;

  HWY_INLINE void round(std::uint32_t k0, std::uint32_t k1) {
    const Lanes p0 = times(c0, 0xD2511F53), p1 = times(c2, 0xCD9E8D57);
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), all(k0));
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), all(k1));
    c1 = p1;
    c3 = p0;
  }
  HWY_INLINE void store(std::uint32_t* words) const {
    const auto pair = [](Lanes low, Lanes high) { return hn::Or(hn::And(low, all(0xFFFFFFFF)), hn::ShiftLeft<32>(high)); };
    hn::StoreInterleaved2(pair(c0, c1), pair(c2, c3), Pairs(), reinterpret_cast<std::uint64_t*>(words));
  }
};

HWY_INLINE State start(const DropoutMask& mask, std::uint64_t block) {
  const Lanes blocks = hn::Iota(Pairs(), block);
  return {blocks, hn::ShiftRight<32>(blocks), all(mask.stream), all(mask.stream >> 32)};
}
}  // namespace internal

template <Isa I>
void PhiloxKernels<I>::words(const DropoutMask& mask, std::uint64_t block, std::uint32_t* words) noexcept {
  internal::State a = internal::start(mask, block), b = internal::start(mask, block + kPhiloxLanes / 2);
  std::uint32_t k0 = std::uint32_t(mask.seed), k1 = std::uint32_t(mask.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    a.round(k0, k1);
    b.round(k0, k1);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  a.store(words);
  b.store(words + 2 * kPhiloxLanes);
}

}  // namespace isomer
