#pragma once
// Texts with numbers, found by what another text begins with: pieces of a vocabulary, added tokens.
//
//   const Prefixes prefixes({{"a", 0}, {"abc", 1}});
//   prefixes.each("abcd", print);                 // size and number of each: 1, 0 and then 3, 1
//
// They are sorted, and every byte of the other text narrows the range of those that still agree: n log(pieces) steps for n bytes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isomer::tokenizers {

class Prefixes {
 public:
  using Entry = std::pair<std::string, std::int32_t>;
  Prefixes() = default;
  /// Of entries with one text the last counts; empty texts are none.
  explicit Prefixes(std::vector<Entry> entries);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Does any begin with this byte?
  [[nodiscard]] bool begins(char byte) const { return first_[code(byte)] < first_[code(byte) + 1]; }

  /// found(size, number) for each that the text begins with, shorter ones first.
  template <class F>
  void each(std::string_view text, F&& found) const {
    if (text.empty()) return;
    std::size_t low = first_[code(text[0])], high = first_[code(text[0]) + 1];
    for (std::size_t depth = 1; low < high; ++depth) {
      if (entries_[low].first.size() == depth) {
        found(depth, entries_[low].second);
        ++low;
      }
      if (low == high || depth == text.size()) return;
      low = bound(low, high, depth, code(text[depth]));
      high = bound(low, high, depth, code(text[depth]) + 1);
    }
  }

  struct Longest {
    std::size_t size = 0;  // 0: none
    std::int32_t number = -1;
  };
  [[nodiscard]] Longest longest(std::string_view text) const {
    Longest best;
    each(text, [&](std::size_t size, std::int32_t number) { best = {size, number}; });
    return best;
  }

 private:
  [[nodiscard]] static std::size_t code(char byte) { return static_cast<unsigned char>(byte); }
  /// The first of a range, all of which are longer than `depth`, whose byte there is at least `byte`.
  [[nodiscard]] std::size_t bound(std::size_t low, std::size_t high, std::size_t depth, std::size_t byte) const {
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (code(entries_[middle].first[depth]) < byte)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  std::vector<Entry> entries_ = {};
  std::array<std::uint32_t, 257> first_ = {};  // where those with each first byte begin
};

}  // namespace isomer::tokenizers
