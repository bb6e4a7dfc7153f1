#include "isomer/models/byte_pairs.h"

#include "isomer/models/tokenizers/patterns.h"

namespace isomer {

std::string_view WordCutter::next() {
  if (rest_.empty()) return {};
  const std::string_view word = rest_.substr(0, tokenizers::word_size(rest_, {}));
  rest_.remove_prefix(word.size());
  return word;
}

}  // namespace isomer
