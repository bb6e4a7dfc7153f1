#pragma once
// The nearest known name to one that is not known, for error texts.
#include <span>
#include <string>
#include <string_view>

namespace isomer {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The first of the nearest names; empty when there are none.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> names);

/// ", did you mean X?", or nothing when no name is near: at most a third of the letters of either is wrong, or
/// their order.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> names);

/// The position of `name` among `names`. Throws Error "op: expected A, B or C, got D, did you mean B?" when there is none.
[[nodiscard]] std::size_t position_of(const char* op, std::string_view name, std::span<const std::string_view> names);

}  // namespace isomer
