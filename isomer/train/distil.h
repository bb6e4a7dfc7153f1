#pragma once
// Distillation (Hinton et al. 2015, arXiv 1503.02531): a converted model learns to say what the old one says, as a whole and on
// the same inputs; labels are not looked at.
// Models with labels are compared by the divergence Σ p log(p / p') of what they think of every token before the padding, of
// every row of a table that is not known, or of every sequence, in nats; models that embed by the squared distance of their
// vectors of length one, which is 2 − 2 cos.
#include <functional>
#include <vector>

#include "isomer/train/session.h"

namespace isomer {

struct DistilOptions {
  Index steps = 0;  // of AdamW on batches of the new recipe's task and size, with all parameters that train
  double lr = 1e-3;
  Index looks = 10;                                            // points of the curve
  Index examples = 64;                                         // of the test, that a point is measured on
  std::function<bool(Index step, double loss)> progress = {};  // of every step; false: stop
};

struct DistilReport {
  struct Point {
    Index step;
    double loss;  // on test examples
  };
  double before = 0, after = 0;  // on test examples
  std::vector<Point> curve = {};
};

/// Throws Error when the models answer in different shapes, and NotFinite.
DistilReport distil(Session& from, Session& to, const DistilOptions& options, Context& context);

/// How far the second is from the first on the first test examples of its task.
[[nodiscard]] double distance(Session& from, Session& to, Index examples, Context& context);

}  // namespace isomer
