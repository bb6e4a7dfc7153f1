#include "isomer/base/suggest.h"

#include <algorithm>
#include <vector>

#include "isomer/base/error.h"

namespace isomer {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes: a swap looks two rows back.
  std::vector<int> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = int(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> names) {
  const auto best = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
  return best == names.end() ? std::string() : *best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const std::string name = nearest(word, names);
  // A third of the letters of the shorter one may be wrong, without the dashes of options, or their order: what is further away
  // is another word, and a wrong hint is worse than none.
  const auto letters = [](std::string_view text) { return text.size() - std::min(text.find_first_not_of('-'), text.size()); };
  const bool near = edit_distance(word, name) <= int(std::min(letters(word), letters(name)) + 1) / 3 ||
                    (edit_distance(word, name) == 2 && std::ranges::is_permutation(word, name));
  return name.empty() || !near ? std::string() : ", did you mean " + name + "?";
}

std::size_t position_of(const char* op, std::string_view name, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return std::size_t(found - names.begin());
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  const std::vector<std::string> copies(names.begin(), names.end());
  fail(op, "expected ", all, ", got ", name, did_you_mean(name, copies));
}

}  // namespace isomer
