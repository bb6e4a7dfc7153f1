#include "isomer/study/claims/conversions.h"

namespace isomer::study {

std::vector<Contender> successors(Index key, double rate) {
  const auto all = [rate](const char* name, const std::string& preset, const Overrides& options = {}) {
    Contender one{.name = name, .set = {"model.layers=" + preset}, .rate = rate};
    for (const std::string& option : options) one.set.push_back("mixer." + preset + "." + option);
    return one;
  };
  const std::string wide = "features=" + std::to_string(2 * key);
  return {all("LUNA", "luna", {"features=" + std::to_string(key / 2), "functions=4"}),
          all("Hedgehog", "hedgehog"),
          all("T2R", "t2r", {wide}),
          all("elu + 1", "linear-elu"),
          all("Performer", "performer", {wide}),
          all("InLine", "inline", {"residual=none"}),
          all("cosFormer", "cosformer")};
}

Contender with_windows(const std::string& name, const std::string& preset, const Overrides& options, Index layers, Index window,
                       double rate) {
  Contender one{.name = name,
                .set = {"model.layers=" + preset + ",sliding-window", "model.repeat=" + std::to_string(layers / 2),
                        "mixer.sliding-window.window=" + std::to_string(window)},
                .rate = rate};
  for (const std::string& option : options) one.set.push_back("mixer." + preset + "." + option);
  return one;
}

Rule luna_leads(bool lower_is_better, double slack, const std::vector<std::string>& others) {
  std::vector<Rule> rules{lower_is_better ? ordering({"Hedgehog", "LUNA"}, slack) : ordering({"LUNA", "Hedgehog"}, slack)};
  for (const std::string& other : others)
    rules.push_back(lower_is_better ? greater(other, "LUNA", 0) : greater("LUNA", other, 0));
  return all_of(std::move(rules));
}

namespace {
/// What a claim shows beside the models' own values.
void read_curves(const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
  std::string improving;
  for (const Comparison::Chosen& one : chosen) {
    bool better = false;
    for (const CellResult* run : one.runs) {
      if (run->diverged) continue;
      better = better || run->improving;
      if (&one == &chosen.front())
        for (const Index step : {Index(0), run->steps}) found.add("softmax", double(step), run->numbers.at("softmax, looked at"));
      found.add("over softmax, " + one.model->name, run->value / run->numbers.at("softmax"));
      for (const auto& [name, value] : run->numbers)
        if (!name.starts_with("softmax"))
          found.add(name + ", " + one.model->name, value);
        else if (&one == &chosen.front() && name != "softmax, looked at")
          found.add(name, value);
      for (const CellPoint& point : run->curve) found.add(one.model->name, double(point.step), point.value);
    }
    if (better) improving += (improving.empty() ? "" : ", ") + one.model->name;
  }
  if (!improving.empty()) found.note("still improving when the steps ended: " + improving);
}
}  // namespace

Claim converted(Claim claim, Comparison comparison, const std::string& y) {
  if (claim.published.empty())
    claim.published = {{.name = "LUNA, share of BERT's GLUE score", .value = 0.995, .where = "table of GLUE"},
                       {.name = "Hedgehog, share of BERT's GLUE score", .value = 0.993, .where = "table of GLUE"}};
  claim.figure = {.kind = "lines",
                  .x = "steps",
                  .y = y,
                  .caption = "On the examples that choose learning rates, from the end of attention transfer on."};
  claim.units.emplace_back("at once", y);
  claim.units.emplace_back("over softmax", "ratio");
  claim.full_only = true;
  comparison.judged = Judged::after_equal_steps;
  comparison.second_look = false;
  return trained(std::move(claim), std::move(comparison), read_curves);
}

}  // namespace isomer::study
