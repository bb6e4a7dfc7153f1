#pragma once
// What the forward pass of a chunk law leaves for its backward pass.
#include "isomer/base/buffer.h"

namespace isomer {

/// The state at every edge of a chunk (delta: and what the chunk wrote). Keep it between calls: its memory is reused.
template <class T>
struct ChunkTape {
  Buffer<T> edges;
  Index chunk = 0;  // tokens of a chunk; 0: nothing was left

  /// Room for `size` elements, of chunks of C tokens.
  [[nodiscard]] T* record(Index C, Index size) {
    if (edges.size() < size) edges = Buffer<T>(size);
    chunk = C;
    return edges.data();
  }
  /// Was as much left, of chunks of C tokens?
  [[nodiscard]] bool holds(Index C, Index size) const { return chunk == C && edges.size() >= size; }
};

}  // namespace isomer
