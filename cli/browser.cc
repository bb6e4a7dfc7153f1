#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace isomer::cli {

bool opened_in_browser(const std::string& target) {
  std::string program = "xdg-open", argument = target;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  // Its words about what it has tried, and a browser's about itself, are not ours.
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  ::posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, program.c_str(), &quiet, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&quiet);
  if (problem != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace isomer::cli
