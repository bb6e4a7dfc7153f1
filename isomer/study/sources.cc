#include "isomer/study/claims/sources.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer::study {

std::string_view name_of(Mode mode) { return mode == Mode::quick ? "quick" : "full"; }

std::span<const Source> sources() {
  static const std::vector<Source> all{softmax_rnn(), dynamical_systems(), large_prompts(), in_line(), metala(), luna(),
                                       swax(),        selective_rope(),    across()};
  return all;
}

std::vector<const Claim*> find_claims(std::span<const std::string> names, Mode mode) {
  std::vector<const Claim*> found;
  std::vector<std::string> known;
  std::vector<bool> used(names.size(), names.empty());
  for (const Source& source : sources()) {
    known.push_back(source.id);
    for (const Claim& claim : source.claims) {
      known.push_back(claim.id);
      bool asked = names.empty();
      for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == claim.id || names[i] == source.id) asked = used[i] = true;
      const bool left_out = claim.full_only && mode == Mode::quick;
      if (left_out && std::ranges::find(names, claim.id) != names.end())
        throw Error(claim.id + " has no quick setting: run it with --full");
      if (asked && !left_out) found.push_back(&claim);
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!used[i]) throw Error("unknown claim " + names[i] + did_you_mean(names[i], known));
  return found;
}

}  // namespace isomer::study
