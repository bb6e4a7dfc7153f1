#pragma once
// The user's view of the proof: every form of a law against its double reference, on the law's own cases.
#include <functional>
#include <string>
#include <vector>

#include "isomer/laws/law.h"

namespace isomer {

/// One line of `isomer check`: the worst error of a quantity over all cases.
struct CheckRow {
  std::string subject, form, type, quantity;
  double error = 0;  // largest |got − want| over the largest |want| of the tensor
  double limit = 0;
  bool pass = false;
  std::string worst;  // the label of the worst case
};

/// `progress(done, total)` is called as the cases go by.
[[nodiscard]] std::vector<CheckRow> check(const Law& law, Context& context, const std::function<void(int, int)>& progress = {});

/// The error of `got` against `want` as above. NaN or a shape mismatch is infinite; equal infinities are no error.
[[nodiscard]] double relative_error(const Tensor& got, const Tensor& want);

}  // namespace isomer
