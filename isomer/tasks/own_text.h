#pragma once
// What the tasks on texts of one's own have in common.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "isomer/models/tokenizer.h"
#include "isomer/tasks/task.h"

namespace isomer::own_text {

/// The option `tokenizer`: a tokenizer.json; none: bytes.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_of(const TaskOptions& options);
/// A token as a reader would write it, on one line.
[[nodiscard]] std::string spelled(const Tokenizer& tokenizer, std::int64_t token);

/// The options `test_share` and `validation_share`.
struct Shares {
  explicit Shares(const TaskOptions& options);
  double test, validation;
};
/// To which split each of n records belongs: as many as the shares say, chosen by the seed, whatever stands in them.
[[nodiscard]] std::vector<Split> deal(std::size_t n, const Shares& shares, std::uint64_t seed);

}  // namespace isomer::own_text
