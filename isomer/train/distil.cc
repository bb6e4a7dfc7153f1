#include "isomer/train/distil.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/features.h"
#include "isomer/models/not_finite.h"

namespace isomer {

namespace {
/// Where p is largest, and Σ p (a − b). Eight sums and maxima beside each other: none waits for the one before.
struct RowSums {
  Index largest = 0;
  double sum = 0;

  RowSums(const float* p, const float* a, const float* b, Index n) {
    constexpr Index kLanes = 8;
    std::array<double, kLanes> sums{};
    std::array<float, kLanes> most{};
    const Index whole = n - n % kLanes;
    for (Index first = 0; first < whole; first += kLanes)
      for (Index i = 0; i < kLanes; ++i) {
        const Index v = first + i;
        sums[std::size_t(i)] += double(p[v]) * (double(a[v]) - double(b[v]));
        most[std::size_t(i)] = std::max(most[std::size_t(i)], p[v]);
      }
    for (Index v = whole; v < n; ++v) {
      sums[0] += double(p[v]) * (double(a[v]) - double(b[v]));
      most[0] = std::max(most[0], p[v]);
    }
    for (const double one : sums) sum += one;
    const float largest_p = *std::ranges::max_element(most);
    // Not there: p is not a number.
    if (const float* at = std::find(p, p + n, largest_p); at != p + n) largest = at - p;
  }
};

/// Teacher and pupil on one batch after the other.
class Lesson {
 public:
  Lesson(Session& from, Session& to, Context& context)
      : from_(from),
        to_(to),
        context_(context),
        watching_(context, Record::no),
        looking_(context, Record::no),
        learning_(context) {}

  /// The mean over what is compared, with its gradients if the pupil learns.
  double look(Split split, Index first, Index count, bool learn) {
    to_.task().fill(split, std::uint64_t(first), count, batch_);
    const ModelInput in = input_of(batch_);
    Tape<float>& tape = learn ? learning_ : looking_;
    watching_.clear();
    tape.clear();
    const Var<float> theirs = from_.model().logits(watching_, in).logits, own = to_.model().logits(tape, in).logits;
    require(theirs.shape() == own.shape(), "distil", "expected answers of the same shape");
    const View<float, 4> seed = learn ? tape.seed(own) : View<float, 4>{};
    const double loss = to_.config().kind == ModelKind::embedding ? squares(theirs, own, seed) : divergence(theirs, own, seed);
    if (learn) tape.backward();
    tape.clear();
    return loss;
  }

 private:
  static double squares(Var<float> theirs, Var<float> own, View<float, 4> seed) {
    const double rows = double(own.dim(0));
    double sum = 0;
    for (Index i = 0; i < own.value.size(); ++i) {
      const double d = double(own.value.data[i]) - double(theirs.value.data[i]);
      sum += d * d;
      if (seed.data != nullptr) seed.data[i] = float(2 * d / rows);
    }
    return sum / rows;
  }

  /// The gradient of Σ p log(p / p') by the logits of p' is p' − p.
  double divergence(Var<float> theirs, Var<float> own, View<float, 4> seed) {
    const Index T = own.dim(1), V = own.dim(3), rows = own.dim(0) * T;
    // Of a row of padding nobody asks, nor of one of a table that is known; where a sequence has one answer it counts.
    const Index known = Index(batch_.known.size()) / batch_.B;
    const auto counts = [&](Index row) { return T == 1 || (row % T >= known && row % T < batch_.lengths[std::size_t(row / T)]); };
    Index count = 0;
    for (Index row = 0; row < rows; ++row) count += counts(row) ? 1 : 0;
    wanted_.resize(std::size_t(rows * V));
    given_.resize(std::size_t(rows * V));
    const View<float, 4> p = contiguous(wanted_.data(), own.shape()), q = contiguous(given_.data(), own.shape());
    softmax<float>(theirs.value, p, context_);
    softmax<float>(own.value, q, context_);
    sums_.assign(std::size_t(rows), 0);
    context_.parallel(rows, [&](Index row, Workspace&) {
      const float *a = theirs.value.data + row * V, *b = own.value.data + row * V, *pa = p.data + row * V, *pb = q.data + row * V;
      float* to = seed.data != nullptr ? seed.data + row * V : nullptr;
      if (!counts(row)) {
        if (to != nullptr) std::fill_n(to, V, 0.0F);
        return;
      }
      // log p − log p' = a − b + c with one c for the row, which is read off where both are large.
      const RowSums all(pa, a, b, V);
      const Index at = all.largest;
      const double rarest = 1e-30;  // what a float may round to 0
      sums_[std::size_t(row)] =
          all.sum + std::log(double(pa[at])) - double(a[at]) + double(b[at]) - std::log(std::max(double(pb[at]), rarest));
      for (Index v = 0; to != nullptr && v < V; ++v) to[v] = (pb[v] - pa[v]) / float(count);
    });
    double sum = 0;
    for (const double one : sums_) sum += one;
    return sum / double(count);
  }

  Session &from_, &to_;
  Context& context_;
  Tape<float> watching_, looking_, learning_;
  Batch batch_;
  std::vector<float> wanted_, given_;
  std::vector<double> sums_;
};

/// On the first test examples.
double tested(Lesson& lesson, Session& to, Index examples) {
  const Index all = to.task().at_most(Split::test, examples), size = to.recipe().train.batch;
  double sum = 0;
  for (Index first = 0; first < all; first += size) {
    const Index count = std::min(size, all - first);
    sum += lesson.look(Split::test, first, count, false) * double(count);
  }
  return sum / double(all);
}
}  // namespace

double distance(Session& from, Session& to, Index examples, Context& context) {
  Lesson lesson(from, to, context);
  return tested(lesson, to, examples);
}

DistilReport distil(Session& from, Session& to, const DistilOptions& options, Context& context) {
  require(options.steps > 0, "distil", "expected at least one step, got ", options.steps);
  Lesson lesson(from, to, context);
  Optimiser<float> optimiser(to.parameters(), {.weight_decay = 0});
  const Schedule schedule{
      .kind = Schedule::Kind::cosine, .steps = options.steps, .warmup = options.steps / 10, .final_fraction = 0.1};
  const Index size = to.recipe().train.batch, every = std::max<Index>(1, options.steps / std::max<Index>(options.looks, 1));
  DistilReport report{.before = tested(lesson, to, options.examples)};
  report.curve.push_back({0, report.before});
  for (Index step = 0; step < options.steps; ++step) {
    const double loss = lesson.look(Split::train, step * size, size, true);
    const double norm = std::isfinite(loss) ? optimiser.step(options.lr * factor(schedule, step), context) : loss;
    to.parameters().zero_gradients();
    if (!std::isfinite(norm)) throw NotFinite("distil: the loss or gradient is not finite in step " + std::to_string(step + 1));
    if ((step + 1) % every == 0) report.curve.push_back({step + 1, tested(lesson, to, options.examples)});
    if (options.progress && !options.progress(step + 1, loss)) break;
  }
  report.after = report.curve.back().loss;
  return report;
}

}  // namespace isomer
