#pragma once
// Ctrl-C, and the SIGTERM of containers and batch systems, as a wish: the work ends where it can be taken up again. A second one
// of the same kind ends the process at once.
#include <atomic>

namespace isomer::cli {

/// From the call on, either sets what is returned.
[[nodiscard]] const std::atomic<bool>& watch_for_interrupt();

}  // namespace isomer::cli
