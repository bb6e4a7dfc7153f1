#pragma once
// The browser of the desktop.
#include <string>

namespace isomer::cli {

/// Asks xdg-open to show a file or an address, and waits for it; false if it cannot.
[[nodiscard]] bool opened_in_browser(const std::string& target);

}  // namespace isomer::cli
