#include "isomer/bench/check.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/base/format.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/mixer_check.h"

namespace isomer {

namespace {
/// What is checked: one or the other.
struct Subject {
  const Law* law = nullptr;
  const Preset* preset = nullptr;

  [[nodiscard]] std::string name() const { return std::string(law != nullptr ? law->name() : preset->name); }
  [[nodiscard]] std::vector<CheckRow> check(Context& context, const CheckPlan& plan) const {
    return law != nullptr ? isomer::check(*law, context, plan) : isomer::check(*preset, context, plan);
  }
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Law* law : laws()) all.push_back({.law = law});
  for (const Preset* preset : presets()) all.push_back({.preset = preset});
  return all;
}

std::vector<Subject> chosen(const std::vector<std::string>& names) {
  std::vector<Subject> all = subjects();
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const Subject& subject : all) known.push_back(subject.name());
  std::vector<Subject> some;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) throw Error("unknown law or preset " + name + did_you_mean(name, known));
    some.push_back(all[std::size_t(found - known.begin())]);
  }
  return some;
}
}  // namespace

Json to_json(const CheckRow& row) {
  return Json::object({{"subject", row.subject},
                       {"form", row.form},
                       {"type", row.type},
                       {"quantity", row.quantity},
                       {"error", row.error},
                       {"limit", row.limit},
                       {"pass", row.pass},
                       {"worst", row.worst}});
}

Cells cells_of(const CheckRow& row) {
  return {{"subject", row.subject},
          {"form", row.form},
          {"type", row.type},
          {"quantity", row.quantity},
          {"error", formatted("%.2e", row.error)},
          {"limit", formatted("%.2e", row.limit)},
          {"pass", row.pass ? "yes" : "NO"},
          {"worst case", row.worst}};
}

std::vector<CheckRow> check_named(const std::vector<std::string>& names, Context& context, const Monitor& monitor) {
  std::vector<CheckRow> rows;
  for (const Subject& subject : chosen(names)) {
    if (monitor.stopped()) break;
    const auto show = [&](int done, int total) {
      monitor.show("check " + subject.name() + ": case " + std::to_string(done) + " of " + std::to_string(total));
    };
    const auto more = subject.check(context, {.progress = show});
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace isomer
