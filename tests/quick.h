#pragma once
// Some runs of the tests (another instruction set, sanitizers) take fewer sizes: the environment says so.
#include <cstdlib>

namespace isomer::tests {

[[nodiscard]] inline bool quick() { return std::getenv("ISOMER_TEST_QUICK") != nullptr; }

}  // namespace isomer::tests
