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

/// What to check, and who watches: `progress(done, total)` is called as the cases go by.
struct CheckPlan {
  std::vector<Type> types{Type::f32, Type::f64};
  std::function<void(int, int)> progress{};
};
[[nodiscard]] std::vector<CheckRow> check(const Law& law, Context& context, const CheckPlan& plan = {});

/// The type's epsilon, of which limits are multiples.
[[nodiscard]] constexpr double epsilon_of(Type type) { return type == Type::f32 ? 0x1p-23 : 0x1p-52; }

/// The largest |got − want| over `scale`. NaN or a shape mismatch is infinite; equal infinities are no error.
[[nodiscard]] double relative_error(const Tensor& got, const Tensor& want, double scale);
/// The same over the largest finite |want|, or 1 when that is 0.
[[nodiscard]] double relative_error(const Tensor& got, const Tensor& want);

/// The scale of one of the tensors a call returned: its largest finite |x|; for a gradient at least 1/16 of the largest gradient
/// of the call, since a smaller one is a difference of terms of that size (softmax of one key has no gradient at all) and carries
/// their errors.
[[nodiscard]] double scale_of(const std::string& quantity, const Tensors& all);

}  // namespace isomer
