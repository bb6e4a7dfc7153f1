#include <hwy/highway.h>

#include "isomer/kernels/dropout/dropout_impl.h"

namespace isomer {

namespace {
namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint32_t>;
using Pairs = hn::ScalableTag<std::uint64_t>;
using Lanes = hn::Vec<Pairs>;
static_assert(2 * hn::MaxLanes(Pairs()) == kPhiloxLanes);

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
}  // namespace

template <>
void PhiloxKernels<Isa::avx2>::words(const DropoutMask& mask, std::uint64_t block, std::uint32_t* words) noexcept {
  State a = start(mask, block), b = start(mask, block + kPhiloxLanes / 2);
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

template struct DropoutKernels<float, Isa::avx2>;
template struct DropoutKernels<double, Isa::avx2>;

}  // namespace isomer
