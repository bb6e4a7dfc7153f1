#include "isomer/models/tokenizers/prefixes.h"

#include <algorithm>

namespace isomer::tokenizers {

Prefixes::Prefixes(std::vector<Entry> entries) {
  std::ranges::stable_sort(entries, {}, &Entry::first);
  for (Entry& entry : entries) {
    if (entry.first.empty()) continue;
    if (!entries_.empty() && entries_.back().first == entry.first)
      entries_.back().second = entry.second;
    else
      entries_.push_back(std::move(entry));
  }
  std::size_t at = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    first_[byte] = std::uint32_t(at);
    while (at < entries_.size() && code(entries_[at].first[0]) == byte) ++at;
  }
  first_[256] = std::uint32_t(at);
}

}  // namespace isomer::tokenizers
