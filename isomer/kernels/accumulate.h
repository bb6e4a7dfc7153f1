#pragma once
// Whether a kernel sets its output or adds to what is there: gradients of a value that is used twice are sums.

namespace isomer {

enum class Accumulate { set, add };

}  // namespace isomer
