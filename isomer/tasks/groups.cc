#include "isomer/tasks/groups.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"

namespace isomer {

namespace {
constexpr Index kLargest = 1024;
using Permutation = std::vector<int>;

std::string cycles_of(const Permutation& p) {
  std::string text;
  std::vector<bool> seen(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (seen[i] || p[i] == int(i)) continue;
    text += '(';
    for (std::size_t j = i; !seen[j]; j = std::size_t(p[j])) {
      seen[j] = true;
      text += std::to_string(j + 1);
    }
    text += ')';
  }
  return text.empty() ? "e" : text;
}

bool is_even(const Permutation& p) {
  int inversions = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    for (std::size_t j = i + 1; j < p.size(); ++j) inversions += p[i] > p[j] ? 1 : 0;
  return inversions % 2 == 0;
}

Group permutations(int points, bool even_only) {
  Permutation p(std::size_t(points), 0);
  std::iota(p.begin(), p.end(), 0);
  std::vector<Permutation> all;
  do {
    if (!even_only || is_even(p)) all.push_back(p);
  } while (std::next_permutation(p.begin(), p.end()));
  // next_permutation goes through them in order, so an element is found by bisection.
  Group group{.order = Index(all.size()), .table = {}, .names = {}, .moved = {}};
  for (const Permutation& a : all) {
    group.names.push_back(cycles_of(a));
    int moved = 0;
    for (int i = 0; i < points; ++i) moved += a[std::size_t(i)] != i ? 1 : 0;
    group.moved.push_back(moved);
    for (const Permutation& b : all) {
      for (std::size_t i = 0; i < p.size(); ++i) p[i] = b[std::size_t(a[i])];
      group.table.push_back(int(std::lower_bound(all.begin(), all.end(), p) - all.begin()));
    }
  }
  return group;
}

Group cyclic(int n) {
  Group group{.order = n, .table = {}, .names = {}, .moved = {}};
  for (int a = 0; a < n; ++a) {
    group.names.push_back(std::to_string(a));
    group.moved.push_back(a == 0 ? 0 : n);
    for (int b = 0; b < n; ++b) group.table.push_back((a + b) % n);
  }
  return group;
}

Group product_of(const Group& a, const Group& b) {
  Group group{.order = a.order * b.order, .table = {}, .names = {}, .moved = {}};
  for (Index i = 0; i < group.order; ++i) {
    const Index ia = i / b.order, ib = i % b.order;
    group.names.push_back(a.names[std::size_t(ia)] + "," + b.names[std::size_t(ib)]);
    group.moved.push_back(a.moved[std::size_t(ia)] + b.moved[std::size_t(ib)]);
    for (Index j = 0; j < group.order; ++j)
      group.table.push_back(int(a.product(ia, j / b.order) * b.order + b.product(ib, j % b.order)));
  }
  return group;
}

Group factor_named(std::string_view name) {
  Index n = 0;
  const bool parsed = name.size() >= 2 && parse_number(name.substr(1), n);
  // S7 and A8 are the first that are too large.
  if (parsed && name[0] == 'S' && n >= 2 && n <= 6) return permutations(int(n), false);
  if (parsed && name[0] == 'A' && n >= 3 && n <= 6) return permutations(int(n), true);
  if (parsed && name[0] == 'Z' && n >= 2 && n <= kLargest) return cyclic(int(n));
  fail("group", "expected Z2 to Z1024, S2 to S6, A3 to A6 or a product such as A4xZ5, got ", name);
}
}  // namespace

Group group_named(std::string_view name) {
  Group group;
  for (bool first = true;; first = false) {
    const std::size_t cross = name.find('x');
    const Group factor = factor_named(name.substr(0, cross));
    require(group.order * factor.order <= kLargest, "group", "expected at most ", kLargest, " elements, got ",
            group.order * factor.order);
    group = first ? factor : product_of(group, factor);
    if (cross == std::string_view::npos) return group;
    name.remove_prefix(cross + 1);
  }
}

}  // namespace isomer
