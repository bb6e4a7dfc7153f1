#include "cli/browser.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace isomer::cli {

bool opened_in_browser(const std::string& target) {
  std::string program = "xdg-open", argument = target;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace isomer::cli
