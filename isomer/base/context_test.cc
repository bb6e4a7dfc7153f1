#include "isomer/base/context.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {

TEST(Context, RunsEveryTaskOnceForAnyNumberOfThreads) {
  for (int threads : {1, 2, 7}) {
    Context context(threads);
    EXPECT_EQ(context.threads(), threads);
    for (Index count : {0, 1, 2, 100, 1000}) {
      std::vector<int> calls(std::size_t(count), 0);
      context.parallel(count, [&](Index i, Workspace&) { ++calls[std::size_t(i)]; });
      for (int n : calls) EXPECT_EQ(n, 1);
    }
  }
}

TEST(Context, BriefWorkIsDoneWhetherThreadsSleepOrNot) {
  Context context(3);
  for (int round = 0; round < 200; ++round) {
    // Long enough for the threads to fall asleep now and then.
    if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<int> calls(5, 0);
    context.parallel_briefly(5, [&](Index i, Workspace&) { ++calls[std::size_t(i)]; });
    EXPECT_EQ(calls, std::vector<int>(5, 1));
    context.parallel(5, [&](Index i, Workspace&) { ++calls[std::size_t(i)]; });
    EXPECT_EQ(calls, std::vector<int>(5, 2));
  }
}

TEST(Context, RethrowsAndStaysUsable) {
  Context context(2);
  EXPECT_THROW(context.parallel(50,
                                [](Index i, Workspace&) {
                                  if (i == 3) throw std::runtime_error("three");
                                }),
               std::runtime_error);
  int calls = 0;
  context.parallel(1, [&](Index, Workspace&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Context, RefusesNegativeThreads) {
  EXPECT_EQ(tests::error_of([] { Context context(-1); }), "Context: expected threads >= 0, got -1");
}

TEST(Context, UsesTheForcedIsa) {
  Isa best = Isa::scalar;
  for (const Isa isa : kIsas)
    if (supported(isa)) best = isa;
  const char* forced = std::getenv("ISOMER_ISA");
  EXPECT_EQ(name_of(Context(1).isa()), forced != nullptr ? std::string_view(forced) : name_of(best));
}

TEST(Workspace, GivesBackAndReuses) {
  Context context(1);
  Workspace& scratch = context.workspace();
  float* first = nullptr;
  {
    const Workspace::Scope scope(scratch);
    first = scratch.take<float>(100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
    EXPECT_NE(scratch.take<float>(100), first);
  }
  const Workspace::Scope scope(scratch);
  EXPECT_EQ(scratch.take<float>(50), first);
}

TEST(Workspace, GrowsAndKeepsEarlierPointersValid) {
  Context context(1);
  Workspace& scratch = context.workspace();
  for (int round = 0; round < 2; ++round) {
    const Workspace::Scope scope(scratch);
    auto* small = scratch.take<int>(1);
    *small = 7;
    auto* large = scratch.take<int>(1 << 20);
    large[(1 << 20) - 1] = 1;
    EXPECT_EQ(*small, 7);
  }
}

TEST(Workspace, IsPoisonedInTests) {
  ASSERT_STREQ(std::getenv("ISOMER_POISON"), "1") << "the tests run with ISOMER_POISON=1";
  Context context(1);
  const Workspace::Scope scope(context.workspace());
  EXPECT_TRUE(std::isnan(context.workspace().take<double>(8)[7]));
  EXPECT_TRUE(std::isnan(Buffer<float>(3)[2]));
}

}  // namespace
}  // namespace isomer
