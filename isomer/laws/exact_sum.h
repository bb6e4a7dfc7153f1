#pragma once
// Prefix sums of log gates: they reach 1e6 with extreme gates while their differences matter to the last digit of a float.
#include "isomer/base/index.h"

namespace isomer {

/// A number as a rounded sum and what the rounding took.
struct ExactSum {
  double value = 0, rest = 0;
};

/// a + b (Knuth's two-sum).
ISOMER_INLINE ExactSum add(ExactSum a, double b) {
  const double sum = a.value + b, part = sum - a.value;
  return {sum, a.rest + ((a.value - (sum - part)) + (b - part))};
}

}  // namespace isomer
