#pragma once
// For tests only: how often the heap was asked for memory so far, by new (heap_test.cc counts) and by Buffer.

namespace isomer::testing {

[[nodiscard]] long heap_allocations();

}  // namespace isomer::testing
