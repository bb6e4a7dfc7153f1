#pragma once
// Numbers that are not finite where a model cannot go on with them: a loss, a gradient, weights in a file. Unlike other Errors it
// is no mistake in what was asked for: the program ends with status 1.
#include "isomer/base/error.h"

namespace isomer {

struct NotFinite : Error {
  using Error::Error;
};

}  // namespace isomer
