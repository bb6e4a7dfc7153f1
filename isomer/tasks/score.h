#pragma once
// Scores of predictions, summed over batches. Ignored labels do not count.
//
//   Score score;
//   score.add(batch, predicted);                     // the class with the largest logit for every label
//   const double value = score.value(Metric::example_accuracy);
#include <span>

#include "isomer/tasks/task.h"

namespace isomer {

class Score {
 public:
  /// As many predictions as the batch has labels.
  void add(const Batch& batch, std::span<const std::int64_t> predicted);
  /// As many numbers as the batch has targets.
  void add(const Batch& batch, std::span<const float> predicted);
  /// The cross-entropy of one or more labels, in nats.
  void add_loss(double sum, double labels);

  /// token_accuracy: share of labels. example_accuracy: share of an example's labels, averaged over examples. exact: share of
  /// examples with every label right. squared_error: of an example's target, averaged. bits_per_token: of add_loss.
  /// NaN when nothing was added that the metric needs.
  [[nodiscard]] double value(Metric metric) const;

 private:
  double labels_ = 0, right_ = 0;
  double examples_ = 0, shares_ = 0, exact_ = 0;
  double vectors_ = 0, squares_ = 0;
  double loss_ = 0, loss_labels_ = 0;
};

}  // namespace isomer
