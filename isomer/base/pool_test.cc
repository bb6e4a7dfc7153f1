#include "isomer/base/pool.h"

#include <gtest/gtest.h>

#include <new>
#include <numeric>
#include <thread>

namespace isomer {
namespace {

TEST(Pool, GivesMemoryAgain) {
  const int* first = nullptr;
  {
    const PoolVector<int> list(100);
    first = list.data();
  }
  // Of the same size class, 512 bytes.
  const PoolVector<int> again(120), other(120);
  EXPECT_EQ(again.data(), first);
  EXPECT_NE(other.data(), first);
}

TEST(Pool, HoldsWhatItIsGivenInEverySize) {
  PoolVector<PoolVector<int>> all;
  for (std::size_t n = 0; n < 300; ++n) {
    all.emplace_back(n * n);
    std::iota(all.back().begin(), all.back().end(), int(n));
  }
  for (std::size_t n = 1; n < all.size(); ++n) {
    EXPECT_EQ(all[n].front(), int(n));
    EXPECT_EQ(all[n].back(), int(n + n * n - 1));
  }
}

TEST(Pool, TakesBackWhatAnotherThreadMade) {
  PoolVector<int> list;
  std::thread([&] { list.assign(1000, 7); }).join();
  EXPECT_EQ(list[999], 7);
  list = {};
  const PoolVector<int> next(1000);
  EXPECT_EQ(next[0], 0);
}

TEST(Pool, RefusesWhatNoMachineHas) { EXPECT_THROW((void)internal::pool_take(~std::size_t{0}), std::bad_alloc); }

}  // namespace
}  // namespace isomer
