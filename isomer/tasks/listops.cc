// ListOps of the Long Range Arena: the value of a nested expression of MIN, MAX, MED and SM (sum modulo 10) on digits.
#include "isomer/tasks/listops.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 4> kOptions{{
    {"shortest", "500", "expressions have more tokens than this; parentheses do not count"},
    {"length", "2000", "and fewer than this; all are padded to it"},
    {"depth", "10", "deepest nesting"},
    {"arguments", "10", "most children of an operator"},
}};

constexpr std::int64_t kDigit = 1, kOperator = 11, kClose = 15, kVocabulary = 16;
constexpr int kMostArguments = 64;
enum Operator { kMin, kMax, kMedian, kSum };

int value_of(Operator what, std::span<int> children) {
  if (what == kSum) {
    int sum = 0;
    for (int child : children) sum += child;
    return sum % 10;
  }
  std::sort(children.begin(), children.end());
  if (what == kMin) return children.front();
  if (what == kMax) return children.back();
  const std::size_t n = children.size();
  // The mean of the two middle ones, cut off, for an even number of them.
  return (children[(n - 1) / 2] + children[n / 2]) / 2;
}

struct Writer {
  Rng& rng;
  const listops::Limits& limits;
  std::span<std::int64_t> tokens;
  std::size_t size = 0;
  bool full = false;

  void put(std::int64_t token) {
    full = full || size == tokens.size();
    if (!full) tokens[size++] = token;
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as limits.depth
  int write(int depth) {
    if (full) return 0;
    if (depth >= limits.depth || rng.uniform() >= 0.25) {
      const int digit = int(rng.below(10));
      put(kDigit + digit);
      return digit;
    }
    const auto what = Operator(rng.below(4));
    put(kOperator + what);
    const auto n = std::size_t(draw::between(rng, 2, limits.arguments));
    std::array<int, kMostArguments> children{};
    for (std::size_t i = 0; i < n; ++i) children[i] = write(depth + 1);
    put(kClose);
    return value_of(what, std::span(children).first(n));
  }
};

class ListOps final : public Task {
 public:
  explicit ListOps(const TaskOptions& options)
      : Task(options),
        shortest_(options.size("shortest", 0, 1 << 20)),
        limits_{int(options.size("depth", 2, 64)), int(options.size("arguments", 2, kMostArguments))} {
    const Index length = options.size("length", 2, 1 << 20);
    require(shortest_ + 1 < length, "listops", "expected a length above shortest + 1 = ", shortest_ + 1, ", got ", length);
    // The longest expression: every child of every operator is one itself, digits at the end.
    double longest = 1;
    for (int level = 1; level < limits_.depth; ++level) longest = 2 + double(limits_.arguments) * longest;
    require(longest > 4 * double(shortest_), "listops", "expected expressions that are often longer than ", shortest_,
            " tokens, got at most ", longest, " with this depth and these arguments");
    shape_ = {.kind = TaskKind::tokens_class,
              .metric = Metric::example_accuracy,
              .length = length,
              .vocabulary = kVocabulary,
              .classes = 10};
  }

  [[nodiscard]] std::string spell(std::int64_t token) const override {
    constexpr std::array<const char*, 6> kWords{"[MIN", "[MAX", "[MED", "[SM", "]"};
    if (token >= kOperator) return kWords[std::size_t(token - kOperator)];
    return token == 0 ? "_" : std::to_string(token - kDigit);
  }

 private:
  void draw(Example& e) const override {
    listops::Expression expression;
    while (expression.length <= shortest_)
      expression = listops::write_random(e.rng, limits_, e.tokens.first(e.tokens.size() - 1));
    std::fill(e.tokens.begin() + expression.length, e.tokens.end(), 0);
    e.length = expression.length;
    e.labels[0] = expression.value;
  }

  Index shortest_;
  listops::Limits limits_;
};
}  // namespace

listops::Expression listops::write_random(Rng& rng, const Limits& limits, std::span<std::int64_t> tokens) {
  Writer writer{.rng = rng, .limits = limits, .tokens = tokens};
  const int value = writer.write(1);
  return {.length = writer.full ? 0 : Index(writer.size), .value = value};
}

const TaskType task::listops{
    .name = "listops",
    .source = "Nangia & Bowman 2018; Tay et al. 2020 (Long Range Arena)",
    .summary = "the value of a nested expression of MIN, MAX, MED and SM on digits",
    .own_options = kOptions,
    .train_examples = "96000",
    .test_examples = "2000",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<ListOps>(options); },
};

}  // namespace isomer
