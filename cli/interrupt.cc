#include "cli/interrupt.h"

#include <csignal>

namespace isomer::cli {

namespace {
std::atomic<bool> stop_asked = false;

extern "C" void ask_to_stop(int signal) {
  std::signal(signal, SIG_DFL);
  stop_asked = true;
}
}  // namespace

const std::atomic<bool>& watch_for_interrupt() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, ask_to_stop);
  return stop_asked;
}

}  // namespace isomer::cli
