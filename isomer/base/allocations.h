#pragma once
// For tests: how often buffers have asked for memory.

namespace isomer::internal {

[[nodiscard]] long allocations() noexcept;

}  // namespace isomer::internal
