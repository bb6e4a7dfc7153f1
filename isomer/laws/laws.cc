#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/channel_decay/channel_decay_law.h"
#include "isomer/laws/delta/delta_law.h"
#include "isomer/laws/law.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"
#include "isomer/laws/scan/scan_law.h"

namespace isomer {

namespace {
std::vector<const Law*>& list() {
  static std::vector<const Law*> all{&attention_law(), &scalar_decay_law(), &channel_decay_law(), &delta_law(), &scan_law()};
  return all;
}
}  // namespace

std::span<const Law* const> laws() { return list(); }

void internal::add_law(const Law& law) { list().push_back(&law); }

const Law& find_law(std::string_view name) {
  std::vector<std::string> names;
  for (const Law* law : laws()) {
    if (law->name() == name) return *law;
    names.emplace_back(law->name());
  }
  throw Error("unknown law " + std::string(name) + did_you_mean(name, names));
}

}  // namespace isomer
