#pragma once
// The program, started again beside itself.
//
//   const pid_t child = start_child({"train", "recipe.toml"}, "log.txt");
//   while (std::optional<ChildEnd> end = next_child_end()) …
//
// A child does not hear the terminal's Ctrl-C: whoever started it passes that on. If that one dies, the child gets SIGINT and can
// save.
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace isomer::cli {

/// What it prints is appended to `log`. Throws std::runtime_error when there can be no more processes.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& arguments, const std::string& log);

struct ChildEnd {
  pid_t child;
  int status;  // what it returned, or 128 + the signal that ended it
};

/// One that has ended since the last call; nothing when none has. Does not wait.
[[nodiscard]] std::optional<ChildEnd> next_child_end();

}  // namespace isomer::cli
