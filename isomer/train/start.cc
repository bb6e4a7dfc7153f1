#include "isomer/train/start.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/io/json.h"
#include "isomer/models/foreign/gguf_model.h"
#include "isomer/models/pretrained.h"

namespace isomer {

namespace {
// In the order of StartedWeight::Fate.
constexpr std::array<std::string_view, 4> kStartFates{"taken", "misshapen", "missing", "unknown"};
}  // namespace

std::string_view name_of(StartedWeight::Fate fate) { return kStartFates[std::size_t(fate)]; }

Index StartReport::count(StartedWeight::Fate fate) const {
  return std::ranges::count_if(weights, [&](const StartedWeight& weight) { return weight.fate == fate; });
}

StartReport start_from(Parameters<float>& parameters, const std::string& path) {
  const std::string gguf = find_gguf(path);
  StartReport report{.from = gguf.empty() ? find_model(path) : gguf, .weights = {}};
  const Tensors there = read_weights(report.from);
  Tensors next = parameters.tensors();
  for (auto& [name, tensor] : next) {
    const auto found = there.find(name);
    if (found == there.end()) {
      report.weights.push_back({name, StartedWeight::Fate::missing, tensor.shape(), {}});
      continue;
    }
    const bool fits = floating(found->second.type()) && found->second.shape() == tensor.shape();
    report.weights.push_back(
        {name, fits ? StartedWeight::Fate::taken : StartedWeight::Fate::misshapen, tensor.shape(), found->second.shape()});
    if (fits) tensor = found->second.clone();
  }
  for (const auto& [name, tensor] : there)
    if (!next.contains(name)) report.weights.push_back({name, StartedWeight::Fate::unknown, {}, tensor.shape()});
  if (report.count(StartedWeight::Fate::taken) == 0)
    throw Error(report.from + ": expected weights with names and shapes of the model, got " + std::to_string(there.size()) +
                " others");
  parameters.assign(next);
  return report;
}

std::string to_json(const StartReport& report) {
  Json json = Json::object({{"from", report.from}});
  for (std::size_t fate = 0; fate < kStartFates.size(); ++fate) {
    Json list = Json::array();
    for (const StartedWeight& weight : report.weights)
      if (weight.fate == StartedWeight::Fate::misshapen && fate == std::size_t(StartedWeight::Fate::misshapen))
        list.push(Json::object({{"name", weight.name}, {"shape", weight.shape}, {"there", weight.there}}));
      else if (weight.fate == StartedWeight::Fate(fate))
        list.push(weight.name);
    json.set(kStartFates[fate], std::move(list));
  }
  return json.dump(1) + "\n";
}

}  // namespace isomer
