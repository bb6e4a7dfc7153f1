#pragma once
// A chunk as the kernels see it: rows of dense elements, and rows to prefetch.
#include "isomer/base/index.h"

namespace isomer {

/// Columns [begin, begin + width) of a head's values, outputs and state. A column never meets another one.
struct Columns {
  Index begin, width;
};

/// Head h of sequence n, and the columns of its state that a task works on.
struct HeadColumns {
  Index n, h;
  Columns columns;
};

namespace chunk {

/// Rows of dense elements, `stride` apart.
template <class T>
struct Rows {
  T* data;
  Index stride;
};

/// C tokens of one head. A law's tokens add its gates.
template <class T>
struct Tokens {
  Index C, K, V;
  Rows<const T> q, k, v;
};

/// Rows that vectors are stored to have kPad elements to spare: the columns of the widest tile of any instruction set.
inline constexpr Index kPad = 32;

/// Rows to prefetch while a chunk is worked on, one of each for every token: what is read next and what this chunk writes.
/// Rows of [B,T,H,D] are too far apart for the hardware to guess.
template <class T>
struct PrefetchList {
  struct Block {
    const T* data;
    Index stride, width, rows;
  };
  Block blocks[16];
  int count = 0;

  void add(const T* data, Index stride, Index width, Index rows) {
    if (data != nullptr) blocks[count++] = {data, stride, width, rows};
  }
};

}  // namespace chunk

}  // namespace isomer
