#include "isomer/train/child_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "isomer/io/text.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

struct ChildProcess : testing::Test {
  tests::TemporaryFolder folder;
  std::string log = folder.path / "log.txt";

  static int wait_for(Child& child) {
    while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return child.status();
  }
};

TEST_F(ChildProcess, ReturnsAStatusAndKeepsWhatItPrints) {
  Child first = Child::start("/bin/sh", {"-c", "echo out; echo err >&2; exit 3"}, log);
  Child second = Child::start("/bin/sh", {"-c", "exit 0"}, folder.path / "other");
  EXPECT_EQ(wait_for(first), 3);
  EXPECT_EQ(wait_for(second), 0);
  EXPECT_EQ(read_text(log), "out\nerr\n");
}

TEST_F(ChildProcess, CanBeInterrupted) {
  Child child = Child::start("/bin/sleep", {"100"}, log);
  EXPECT_FALSE(child.ended());
  // Who runs the tests may ignore the signal, and so does the child until it is the program.
  for (; !child.ended(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) child.interrupt();
  EXPECT_EQ(child.status(), 128 + 2);
}

TEST_F(ChildProcess, AProgramThatIsNotThereHasTheStatusOfShells) {
  Child child = Child::start("/nowhere/isomer", {}, log);
  EXPECT_EQ(wait_for(child), 127);
}

}  // namespace
}  // namespace isomer
