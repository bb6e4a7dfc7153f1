#pragma once
// How often a test program has asked the heap for memory so far: by new (heap.cc counts) and by the library's buffers.

namespace isomer::tests {

[[nodiscard]] long heap_allocations();

}  // namespace isomer::tests
