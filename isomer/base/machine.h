#pragma once
// What a result was measured on, and the memory that there is.
#include <string>
#include <string_view>

namespace isomer {

class Context;

/// Of the library, e.g. "0.1.0".
[[nodiscard]] std::string_view version();

struct Machine {
  std::string cpu, isa;
  int cores = 1;
  int threads = 1;  // that were used
  std::string compiler, version;
};
[[nodiscard]] Machine machine_of(const Context& context);

/// The most memory that the process has taken so far.
[[nodiscard]] long peak_memory_mib();
/// What the machine has, or what the process may take of it (a control group).
[[nodiscard]] double machine_memory_bytes();

}  // namespace isomer
