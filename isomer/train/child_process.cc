#include "isomer/train/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace isomer {

namespace {
/// What cannot be started says so by this status, as in shells.
constexpr int kNotStarted = 127;

/// In the child: only functions that are safe after a fork.
[[noreturn]] void become(const char* program, char* const* arguments, const char* log, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGINT);
  const int in = ::open("/dev/null", O_RDONLY), out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (::getppid() != parent || in < 0 || out < 0) ::_exit(kNotStarted);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  std::signal(SIGINT, SIG_DFL);
  ::execv(program, arguments);
  ::_exit(kNotStarted);
}
}  // namespace

Child Child::start(const std::string& program, const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<std::string> words{"isomer"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(program.c_str(), pointers.data(), log.c_str(), parent);
  if (child < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  return Child(child);
}

bool Child::ended() {
  if (status_) return true;
  int status = 0;
  const pid_t found = ::waitpid(id_, &status, WNOHANG);
  if (found == 0) return false;
  // One that somebody else has waited for has ended too; how is not known.
  status_ = found < 0 ? kNotStarted : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

void Child::interrupt() const {
  if (!status_) ::kill(id_, SIGINT);
}

}  // namespace isomer
