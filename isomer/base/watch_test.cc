#include "isomer/base/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "isomer/base/context.h"

namespace isomer {
namespace {

struct Ended : std::runtime_error {
  Ended() : std::runtime_error("ended") {}
};

std::atomic<bool> asked = false;
std::atomic<int> looks = 0;
void look() {
  ++looks;
  if (asked) throw Ended();
}
void sleep_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(Watch, EndsTheTasksOfAContextAndLeavesItUsable) {
  for (const int threads : {1, 3}) {
    Context context(threads);
    asked = true;
    std::atomic<int> calls = 0;
    auto work = [&](Index, Workspace&) {
      ++calls;
      sleep_for(20);
    };
    {
      const Watch watch(look);
      EXPECT_THROW(context.parallel(100000, work), Ended);
    }
    EXPECT_LT(calls.load(), 1000);
    calls = 0;
    context.parallel(5, work);
    EXPECT_EQ(calls.load(), 5);
  }
}

TEST(Watch, EndsWhatOtherThreadsAreInTheMiddleOf) {
  Context context(3);
  asked = true;
  const auto began = std::chrono::steady_clock::now();
  {
    const Watch watch(look);
    EXPECT_THROW(context.parallel(3,
                                  [](Index, Workspace&) {
                                    for (int i = 0; i < 2000; ++i, may_stop()) sleep_for(10);
                                  }),
                 Ended);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  std::atomic<int> calls = 0;
  context.parallel(9, [&](Index, Workspace&) {
    may_stop();
    ++calls;
  });
  EXPECT_EQ(calls.load(), 9);
}

TEST(Watch, IsAskedWhileTheCallerWaitsForOthers) {
  Context context(2);
  asked = false, looks = 0;
  const std::thread::id caller = std::this_thread::get_id();
  const Watch watch(look);
  // The caller has nothing to do while the other thread works.
  std::atomic<bool> other = false;
  context.parallel(2, [&](Index, Workspace&) {
    if (std::this_thread::get_id() == caller) {
      while (!other) std::this_thread::yield();
    } else {
      other = true;
      sleep_for(700);
    }
  });
  EXPECT_GE(looks.load(), 1);
}

TEST(Watch, LooksNowAndThenAndInItsOwnThreadAlone) {
  asked = true, looks = 0;
  may_stop();
  const Watch watch(look);
  for (int i = 0; i < 1000; ++i) may_stop();
  EXPECT_EQ(looks.load(), 0);
  std::thread([] {
    sleep_for(250);
    may_stop();
  }).join();
  EXPECT_EQ(looks.load(), 0);
  {
    const Watch nobody(nullptr);
    may_stop();
    EXPECT_FALSE(watched());
  }
  EXPECT_TRUE(watched());
  EXPECT_THROW(may_stop(), Ended);
}

}  // namespace
}  // namespace isomer
