#pragma once
// The program as its users see it: started as a process in a folder of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/temporary_folder.h"

namespace isomer {

namespace fs = std::filesystem;

struct Result {
  int status;
  std::string out, err;
};

struct Cli : testing::Test {
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path;

  [[nodiscard]] static std::string text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// `before` is shell text, such as "ulimit -f 1;".
  [[nodiscard]] Result run(const std::string& arguments, const std::string& before = "") const {
    const std::string out = folder / ".out", err = folder / ".err";
    const std::string command = before + " '" ISOMER_BINARY_DIR "/isomer' " + arguments + " >'" + out + "' 2>'" + err + "'";
    const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(out), text(err)};
  }
  [[nodiscard]] std::string path(const char* name) const { return folder / name; }
  /// The files that are left, without those of run().
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(folder)) names.insert(file.path().filename());
    names.erase(".out");
    names.erase(".err");
    return names;
  }
  /// A wrong request: status 2, nothing on standard output, and this line.
  void expect_wrong(const std::string& arguments, const std::string& line) const {
    const Result result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(result.err, line + "\n") << arguments;
  }
};

}  // namespace isomer
