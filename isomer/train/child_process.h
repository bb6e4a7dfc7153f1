#pragma once
// A program beside this one, whose output goes into a file.
//
//   Child child = Child::start(program, {"train", "recipe.toml"}, "log.txt");  // "/usr/bin/isomer"
//   while (!child.ended()) std::this_thread::yield();
//   if (child.status() != 0) throw Error("it failed: see log.txt");
//
// A child does not hear the terminal's Ctrl-C: whoever started it passes that on by interrupt(). If that one dies, the child gets
// SIGINT and can save.
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace isomer {

class Child {
 public:
  /// What it prints is appended to `log`. Throws std::runtime_error when there can be no more processes.
  [[nodiscard]] static Child start(const std::string& program, const std::vector<std::string>& arguments, const std::string& log);
  /// Has it ended? Does not wait.
  [[nodiscard]] bool ended();
  /// Once it has ended: what it returned, or 128 + the signal that ended it.
  [[nodiscard]] int status() const { return status_.value_or(0); }
  void interrupt() const;

 private:
  explicit Child(pid_t id) : id_(id) {}
  pid_t id_;
  std::optional<int> status_ = {};
};

}  // namespace isomer
