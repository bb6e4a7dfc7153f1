#pragma once
// The sources, one file each.
#include "isomer/study/claim.h"

namespace isomer::study {

[[nodiscard]] Source softmax_rnn();
[[nodiscard]] Source dynamical_systems();
[[nodiscard]] Source large_prompts();
[[nodiscard]] Source in_line();
[[nodiscard]] Source metala();
[[nodiscard]] Source luna();
[[nodiscard]] Source swax();
[[nodiscard]] Source selective_rope();
[[nodiscard]] Source across();

}  // namespace isomer::study
