#include "isomer/io/file_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "isomer/base/error.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

TEST(FileLock, IsHeldByOneAtATime) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "lock";
  EXPECT_THROW((void)FileLock::take(path), Error);
  EXPECT_FALSE(FileLock::is_held(path));
  std::ofstream(path) << "x";
  {
    const std::optional<FileLock> lock = FileLock::take(path);
    ASSERT_TRUE(lock.has_value());
    EXPECT_TRUE(FileLock::is_held(path));
    EXPECT_FALSE(FileLock::take(path).has_value());
    EXPECT_TRUE(FileLock::is_held(path)) << "who asks in vain takes nothing away";
  }
  EXPECT_FALSE(FileLock::is_held(path));
  EXPECT_TRUE(FileLock::take(path).has_value());
}

TEST(FileLock, OfSeveralThatMakeTheFileOneHasIt) {
  constexpr int kRounds = 200, kThreads = 4;
  const tests::TemporaryFolder folder;
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = folder.path / std::to_string(round);
    std::array<std::optional<FileLock>, kThreads> locks;
    std::barrier ready(kThreads);
    std::vector<std::thread> threads;
    for (std::optional<FileLock>& lock : locks)
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        lock = FileLock::take(path, FileLock::Absent::make);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(std::ranges::count_if(locks, [](const auto& lock) { return lock.has_value(); }), 1) << round;
  }
}

TEST(FileLock, IsOneOfTheFileThatHasTheName) {
  constexpr int kRounds = 500, kOthers = 3;
  const tests::TemporaryFolder folder;
  const std::string path = folder.path / "lock";
  for (int round = 0; round <= kRounds; ++round) std::ofstream(path + std::to_string(round)) << "x";
  std::filesystem::rename(path + "0", path);
  std::optional<FileLock> owner = FileLock::take(path);
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; ++i)
    others.emplace_back([&] {
      for (; !done; std::this_thread::sleep_for(std::chrono::microseconds(20)))
        if (const std::optional<FileLock> lock = FileLock::take(path); lock && !FileLock::is_held(path)) ++wrong;
    });
  // As a run that keeps a changed recipe: who holds the file replaces it, and holds the new one if nobody was faster.
  for (int round = 1; round <= kRounds; ++round) {
    std::filesystem::rename(path + std::to_string(round), path);
    owner.reset();
    while (!owner) owner = FileLock::take(path);
  }
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace isomer
