#include "isomer/tasks/score.h"

#include <numbers>

#include "isomer/base/error.h"

namespace isomer {

void Score::add(const Batch& batch, std::span<const std::int64_t> predicted) {
  require(predicted.size() == batch.labels.size(), "score", "expected ", batch.labels.size(), " predictions, got ",
          predicted.size());
  const std::size_t each = batch.B == 0 ? 0 : batch.labels.size() / std::size_t(batch.B);
  for (std::size_t b = 0; b < std::size_t(batch.B); ++b) {
    double labels = 0, right = 0;
    for (std::size_t i = b * each; i < (b + 1) * each; ++i) {
      if (batch.labels[i] == kIgnored) continue;
      labels += 1;
      right += batch.labels[i] == predicted[i] ? 1 : 0;
    }
    if (labels == 0) continue;
    labels_ += labels;
    right_ += right;
    examples_ += 1;
    shares_ += right / labels;
    exact_ += right == labels ? 1 : 0;
  }
}

void Score::add(const Batch& batch, std::span<const float> predicted) {
  require(predicted.size() == batch.targets.size(), "score", "expected ", batch.targets.size(), " numbers, got ",
          predicted.size());
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = double(predicted[i]) - double(batch.targets[i]);
    squares_ += error * error;
  }
  vectors_ += double(batch.B);
}

void Score::add_loss(double sum, double labels) {
  loss_ += sum;
  loss_labels_ += labels;
}

double Score::value(Metric metric) const {
  switch (metric) {
    case Metric::token_accuracy: return right_ / labels_;
    case Metric::example_accuracy: return shares_ / examples_;
    case Metric::exact: return exact_ / examples_;
    case Metric::squared_error: return squares_ / vectors_;
    case Metric::bits_per_token: return loss_ / loss_labels_ / std::numbers::ln2;
  }
  fail("score", "expected a metric, got number ", int(metric));
}

}  // namespace isomer
