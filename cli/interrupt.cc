#include "cli/interrupt.h"

#include <csignal>

namespace isomer::cli {

namespace {
std::atomic<bool> stop_asked = false;

extern "C" void ask_to_stop(int) {
  std::signal(SIGINT, SIG_DFL);
  stop_asked = true;
}
}  // namespace

const std::atomic<bool>& watch_for_interrupt() {
  std::signal(SIGINT, ask_to_stop);
  return stop_asked;
}

}  // namespace isomer::cli
