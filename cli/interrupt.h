#pragma once
// Ctrl-C as a wish: the work ends where it can be taken up again. A second one ends the process at once.
#include <atomic>

namespace isomer::cli {

/// From the call on, Ctrl-C sets what is returned.
[[nodiscard]] const std::atomic<bool>& watch_for_interrupt();

}  // namespace isomer::cli
