#pragma once
// What claims of Selective RoPE on trained models share: a mixer with each kind of position, and what a probe saw of it.
#include <string>
#include <utility>
#include <vector>

#include "isomer/study/probes.h"
#include "isomer/study/trained.h"

namespace isomer::study {

inline const Overrides kNone{"mixer.all.position=none"}, kRope{"mixer.all.position=rope"},
    kSelective{"mixer.all.position=selective-rope"};

inline Overrides joined(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// One mixer with each position. The rates are those of a quick study.
struct Rates {
  double none, rope, selective;
};
inline std::vector<Contender> positions(const Overrides& mixer, const Rates& quick, const Overrides& selective) {
  return {{.name = "no positions", .set = joined(mixer, kNone), .rate = quick.none},
          {.name = "RoPE", .set = joined(mixer, kRope), .rate = quick.rope},
          {.name = "selective RoPE", .set = joined(mixer, selective), .rate = quick.selective}};
}

/// The metric on other lengths than those of training.
inline Probe tested_at(std::vector<std::string> lengths, std::string name) {
  return {.name = std::move(name), .measure = [lengths = std::move(lengths)](Session& session, Context& context) {
            Numbers all;
            for (const std::string& length : lengths)
              all[length] = value_with(session, {"task.test_length=" + length}, {.examples = 256}, context);
            return all;
          }};
}

/// What the probe measured of each model, beside its metric.
inline More also(std::vector<std::pair<std::string, std::string>> numbers) {
  return [numbers = std::move(numbers)](const std::vector<Comparison::Chosen>& chosen, Evidence& found) {
    for (const Comparison::Chosen& one : chosen)
      for (const CellResult* run : one.runs)
        for (const auto& [number, text] : numbers) found.add(one.model->name + text, run->diverged ? 0 : run->numbers.at(number));
  };
}

}  // namespace isomer::study
