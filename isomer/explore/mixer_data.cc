#include "isomer/explore/mixer_data.h"

#include "isomer/explore/looks.h"

namespace isomer {

Json mixer_data(const FreshQuestion& question, Context& context) {
  const Sight sight(fresh_subject(question), context);
  const Subject& subject = sight.subject();
  Json heads = Json::array(), rows = Json::array();
  for (const Sight::Head& head : sight.heads(0)) {
    Json all = view_of(head);
    const Json curves = curves_of(head);
    for (const auto& [name, value] : curves.members()) all.set(name, value);
    all.set("eigenvalues", eigenvalues_of(head.system(), subject.T() - 1));
    heads.push(std::move(all));
  }
  for (Index c = 0; c < subject.T(); ++c)
    rows.push(rounded(influence(subject, {.token = c, .word = subject.another_word(c)}, context)));
  Json data = layer_json(subject, 0);
  data.set("heads", heads);
  data.set("influence", rows);
  return data;
}

Json all_mixers(const std::vector<std::string>& words, Context& context) {
  Json all = Json::array();
  for (const Preset* preset : presets())
    if (graph::causal(build_mixer(*preset, {.width = FreshQuestion{}.width})))
      all.push(mixer_data({.preset = std::string(preset->name), .words = words}, context));
  return all;
}

}  // namespace isomer
