#pragma once
// A block of rows × columns of an operand, as the kernels of one instruction set see it.
#include "isomer/base/index.h"

namespace isomer {

struct Extent {
  Index rows, columns;
};

/// Cell (r, c) is data[r · row + c · column]. Kernels read columns that are dense (1) or repeated (0) and write dense ones.
/// `data` is null for an absent operand.
template <class T>
struct Cells {
  T* data = nullptr;
  Index row = 0, column = 0;
};

}  // namespace isomer
