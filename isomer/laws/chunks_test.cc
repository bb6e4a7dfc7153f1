#include "isomer/laws/chunks.h"

#include <gtest/gtest.h>

#include <atomic>

namespace isomer {
namespace {

Chunks cut(std::initializer_list<Index> lengths, Index H) {
  PoolVector<Sequence> all;
  Index first = 0;
  for (Index length : lengths) {
    all.push_back({0, first, length});
    first += length;
  }
  return make_chunks(std::move(all), H, 24);
}

TEST(Chunks, HeadsAreCutIntoSlicesWhereThreadsWouldWait) {
  EXPECT_EQ(cut({4096}, 1).slices(1, 64), 1);
  EXPECT_EQ(cut({4096}, 1).slices(2, 64), 2);
  EXPECT_EQ(cut({4096}, 1).slices(2, 128), 2);
  EXPECT_EQ(cut({4096}, 2).slices(2, 64), 1);
  EXPECT_EQ(cut({4096}, 3).slices(2, 64), 2);
  EXPECT_EQ(cut({4096}, 8).slices(7, 64), 4);
  EXPECT_EQ(cut({4096}, 1).slices(2, 16), 1) << "a slice is a vector at least";
  EXPECT_EQ(cut({60}, 1).slices(2, 64), 1) << "a few tokens are done before another thread is awake";
  EXPECT_EQ(cut({4096, 100}, 1).slices(2, 64), 2) << "the short one fills no thread";
  EXPECT_EQ(cut({4096, 4096}, 1).slices(2, 64), 1);
}

TEST(Chunks, SlicesAreAllColumnsOnce) {
  for (Index V : {1, 16, 17, 40, 64, 100})
    for (Index H : {1, 3})
      for (int threads : {1, 2, 7}) {
        Context context(threads);
        const Chunks chunks = cut({200, 300}, H);
        std::vector<std::atomic<int>> seen(std::size_t(2 * H * V));
        chunks.each_slice(context, V, [&](Index n, Index h, Index count, Columns columns, Workspace&) {
          EXPECT_EQ(columns.begin % 16, 0);
          for (Index i = h; i < h + count; ++i)
            for (Index c = 0; c < columns.width; ++c) ++seen[std::size_t((n * H + i) * V + columns.begin + c)];
        });
        for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
      }
}

}  // namespace
}  // namespace isomer
