#include "isomer/train/convert.h"

#include <algorithm>
#include <array>
#include <optional>

#include "isomer/base/error.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/preset.h"

namespace isomer {

namespace {
using Fate = ConvertedParameter::Fate;

// In the order of Fate.
constexpr std::array<std::string_view, 4> kFates{"kept", "repeated", "new", "dropped"};

/// Options that say what projections look like and how tokens know their place: they mean the same in every preset.
bool carries_over(const std::string& option) {
  constexpr std::array<std::string_view, 6> kShared{"kv_heads", "bias", "causal", "position", "position_length", "rope_base"};
  return std::ranges::find(kShared, option) != kShared.end() || option.starts_with("phase_");
}

/// Parameters that mean the same in every preset, by the first part of their names.
bool shared_by_presets(std::string_view name) {
  constexpr std::array<std::string_view, 5> kShared{"q", "k", "v", "o", "position"};
  return std::ranges::find(kShared, name) != kShared.end() || name == "phase" || name.starts_with("phase_");
}

std::string option_of(const graph::Graph& graph, std::string_view name) {
  for (const auto& [option, value] : graph.options)
    if (option == name) return value;
  return {};
}

/// How often the rows of an old k or v stand below each other in the new one: once, or for every head that shared them; 0: never.
Index times(const graph::Graph& from, std::string_view name, Index old_rows, Index new_rows) {
  if (old_rows == new_rows) return 1;
  const std::string heads = option_of(from, "heads"), groups = option_of(from, "kv_heads");
  if ((name != "k" && name != "v") || groups.empty()) return 0;
  const Index shared = std::stoll(heads) / std::stoll(groups);
  return old_rows * shared == new_rows ? shared : 0;
}

/// [rows, columns] of a projection, if the mixer has it.
std::optional<std::array<Index, 2>> projection(const graph::Graph& graph, std::string_view name) {
  for (const graph::Node& node : graph.nodes) {
    if (node.parameters != name || !std::holds_alternative<graph::Linear>(node.work)) continue;
    const graph::Node& input = graph.nodes[std::size_t(node.inputs[0])];
    return std::array{node.size, input.heads * input.size};
  }
  return {};
}

/// Which of q, k, v and o the new mixer would keep.
std::string kept_projections(const graph::Graph& from, const graph::Graph& to) {
  std::string kept;
  for (const char* name : {"q", "k", "v", "o"}) {
    const auto before = projection(from, name), after = projection(to, name);
    if (before && after && (*before)[1] == (*after)[1] && times(from, name, (*before)[0], (*after)[0]) > 0) kept += name;
  }
  return kept;
}

/// `own` options of the new mixer, and those of the old that it shares and that are not as it would have them by itself. `all`
/// are those of the recipe for every mixer, which come last.
Settings carried(const graph::Graph& from, const Preset& preset, const Place& place, const Settings& own, const Settings& all) {
  const auto known = [&](const Settings& settings, const std::string& name) -> std::optional<MixerOption> {
    for (const MixerOption& option : options_of(preset, place, settings))
      if (option.name == name) return option;
    return {};
  };
  Settings settings = own;
  // All sizes at once: a part of them may divide nothing.
  for (const char* size : {"heads", "key", "value"})
    if (const std::string value = option_of(from, size); !value.empty()) settings.emplace(size, value);
  const Settings sized = settings;
  for (const char* size : {"heads", "key", "value"})
    if (!own.contains(size) && !known(sized, size)) settings.erase(size);
  for (const auto& [name, value] : from.options) {
    if (!carries_over(name) || settings.contains(name)) continue;
    Settings more = settings;
    more.emplace(name, value);
    try {
      const auto option = known(more, name);
      if (option && (option->fallback != value || all.contains(name))) settings = more;
    } catch (const Error&) {
      // The new mixer does not offer it, or has other options that exclude it.
    }
  }
  return settings;
}

/// Options of the old mixer that are not as they are by themselves and that the new one does not have.
void note_dropped(const graph::Graph& from, const graph::Graph& to, const Place& place, std::vector<std::string>& dropped) {
  Settings sizes;
  for (const char* size : {"heads", "key", "value"}) sizes.emplace(size, option_of(from, size));
  for (const MixerOption& option : options_of(find_preset(from.preset), place, sizes)) {
    const std::string value = option_of(from, option.name), now = option_of(to, option.name);
    // Keys and values that heads share are repeated, and linear mixers have one option for all biases.
    const bool there =
        now == value || option.name == "kv_heads" || (option.name == "output_bias" && option_of(to, "bias") == value);
    if (value.empty() || value == option.fallback || there) continue;
    const std::string text = option.name + "=" + value;
    if (std::ranges::find(dropped, text) == dropped.end()) dropped.push_back(text);
  }
}

/// The presets that would keep q, k, v and o of a layer.
std::string able_presets(const graph::Graph& from, const Place& place, const Settings& all) {
  std::string names;
  for (const Preset* preset : presets()) {
    try {
      const graph::Graph to = build_mixer(*preset, place, carried(from, *preset, place, {}, all));
      if (kept_projections(from, to) == "qkvo") names.append(names.empty() ? "" : ", ").append(preset->name);
    } catch (const Error&) {
      // It needs options of its own here.
    }
  }
  return names;
}

std::vector<Index> chosen_layers(const ConversionRequest& request, Index count) {
  std::vector<Index> layers = request.layers;
  for (Index i = 0; request.layers.empty() && i < count; ++i) layers.push_back(i);
  std::ranges::sort(layers);
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  for (const Index layer : layers)
    require(layer >= 0 && layer < count, "convert", "expected layers from 0 to ", count - 1, ", got ", layer);
  return layers;
}

/// The recipe with the layers exchanged and the overrides read, before options are carried over.
Recipe exchanged(const Recipe& recipe, std::vector<std::string> names, const ConversionRequest& request,
                 const std::vector<Index>& layers) {
  const std::string own = "mixer." + request.mixer + ".";
  for (const std::string& text : request.overrides)
    if (!text.starts_with(own) && !text.starts_with("train.") && (!text.starts_with("task.") || text.starts_with("task.name=")))
      throw Error("--set: expected a key of the new mixer (" + own + "…), of training (train.…) or of the task (task.…), got " +
                  text);
  Recipe next = recipe;
  next.model.layers = std::move(names);
  next.model.repeat = 1;
  next.train.start.clear();
  for (const Index layer : layers) next.model.layers[std::size_t(layer)] = request.mixer;
  next.lines["model.layers"] = 0;
  forget_options_of_other_layers(next);
  std::erase_if(next.mixers, [&](const auto& table) {
    return table.first != "all" && std::ranges::find(next.model.layers, table.first) == next.model.layers.end();
  });
  return parse_recipe(parse_toml(to_toml(next), "the new recipe"), request.overrides);
}

Settings table(const Recipe& recipe, const std::string& name) {
  const auto found = recipe.mixers.find(name);
  return found == recipe.mixers.end() ? Settings{} : found->second;
}

/// "layers.3.mixer.q.weight" is the q of layer 3.
struct MixerParameter {
  Index layer = -1;
  std::string_view part;  // up to the first dot

  explicit MixerParameter(std::string_view name) {
    constexpr std::string_view kLayers = "layers.", kMixer = ".mixer.";
    const std::size_t mixer = name.find(kMixer);
    if (!name.starts_with(kLayers) || mixer == std::string_view::npos) return;
    if (!parse_number(name.substr(kLayers.size(), mixer - kLayers.size()), layer)) return;
    part = name.substr(mixer + kMixer.size());
    part = part.substr(0, part.find('.'));
  }
};

/// The rows of every one of `groups`, `count` times.
Tensor repeated(const Tensor& x, Index groups, Index count) {
  std::vector<Index> shape = x.shape();
  shape[0] *= count;
  Tensor all(x.type(), shape);
  const Index block = x.size() / groups;
  for (Index i = 0; i < groups * count; ++i)
    std::copy_n(x.data<float>() + i / count * block, block, all.data<float>() + i * block);
  return all;
}

/// The old numbers in the shape of the new parameter, if they are to be kept.
struct Taken {
  std::optional<Tensor> numbers = {};
  Fate fate = Fate::fresh;
};

Taken take(const graph::Graph& from, std::string_view part, Tensor& old, const std::vector<Index>& shape) {
  if (old.shape() == shape) return {std::move(old), Fate::kept};
  if (old.shape().size() != shape.size() || old.shape().empty() ||
      !std::equal(shape.begin() + 1, shape.end(), old.shape().begin() + 1))
    return {};
  const Index count = times(from, part, old.shape()[0], shape[0]);
  if (count == 0) return {};
  return {repeated(old, std::stoll(option_of(from, "kv_heads")), count), Fate::repeated};
}
/// Of a layer that is not converted.
void expect_same(Index layer, const graph::Graph& before, const graph::Graph& after) {
  if (graph::fingerprint(before) == graph::fingerprint(after)) return;
  require(before.options != after.options, "convert", "layer ", layer, " (", before.preset,
          ") depends on whether it is the first of its preset, which changes: expected --layers with it");
  fail("convert", "layer ", layer, " is ", after.preset,
       " already, with other options than the new ones: expected --layers with it");
}
}  // namespace

std::string_view name_of(Fate fate) { return kFates[std::size_t(fate)]; }

Conversion plan_conversion(const Session& session, const ConversionRequest& request) {
  const Preset& preset = find_preset(request.mixer);
  const Recipe& recipe = session.recipe();
  const ModelConfig& before = session.config();
  Conversion plan;
  plan.layers = chosen_layers(request, Index(before.layers.size()));
  std::vector<std::string> names;
  for (const LayerConfig& layer : before.layers) names.push_back(layer.preset);
  plan.recipe = exchanged(recipe, std::move(names), request, plan.layers);
  const Settings own = table(plan.recipe, request.mixer), all = table(plan.recipe, "all");
  std::optional<Settings> settings;
  for (const Index layer : plan.layers) {
    const LayerConfig& old = before.layers[std::size_t(layer)];
    const Place place{.width = before.width, .layer = layer, .layers = Index(before.layers.size())};
    const graph::Graph from = build_mixer(old.preset, place, old.options);
    // A layer of a model that is there already stays what it is.
    if (!recipe.model.from.empty() && old.preset == request.mixer && own.empty()) continue;
    const Settings here = carried(from, preset, place, own, all);
    require(
        !settings || *settings == here, "convert", "layers ", plan.layers[0], " and ", layer,
        " differ in what the new mixer takes over, and a recipe has one table of options for it: expected --layers that agree");
    settings = here;
    const graph::Graph to = build_mixer(preset, place, here);
    note_dropped(from, to, place, plan.dropped);
    const std::string kept = kept_projections(from, to);
    // To look at all presets takes seconds.
    if (kept.find_first_of("qkv") == std::string::npos)
      fail("convert", request.mixer, " keeps none of q, k and v of layer ", layer, " (", old.preset,
           "); those that keep q, k, v and o: ", able_presets(from, place, all));
  }
  if (settings && !settings->empty()) plan.recipe.mixers[request.mixer] = *settings;
  plan.model = before;
  plan.model.layers = layer_configs(plan.recipe);
  for (std::size_t i = 0; i < before.layers.size(); ++i) plan.model.layers[i].norm_place = before.layers[i].norm_place;
  for (Index layer = 0; layer < Index(before.layers.size()); ++layer)
    if (!std::ranges::binary_search(plan.layers, layer))
      expect_same(layer, layer_graph(before, layer), layer_graph(plan.model, layer));
  return plan;
}

std::vector<ConvertedParameter> take_weights(Session& from, Session& to, std::span<const Index> layers) {
  Tensors old = from.parameters().tensors(), next = to.parameters().tensors();
  std::vector<ConvertedParameter> fates;
  for (const Parameter<float>& p : to.parameters().all()) {
    const MixerParameter at(p.name());
    const bool converted = std::ranges::find(layers, at.layer) != layers.end();
    const auto found = old.find(p.name());
    Taken taken;
    if (found != old.end()) {
      const Mixer<float>& mixer = from.model().block(std::max<Index>(at.layer, 0)).mixer();
      const bool same =
          !converted || shared_by_presets(at.part) || mixer.graph().preset == to.model().block(at.layer).mixer().graph().preset;
      if (same) taken = take(mixer.graph(), at.part, found->second, p.spec.shape);
    }
    if (taken.numbers) {
      next.insert_or_assign(p.name(), std::move(*taken.numbers));
      old.erase(found);
    }
    const bool fresh_of_all = p.name().starts_with("shared.") && taken.fate == Fate::fresh;
    ISOMER_ASSERT(converted || fresh_of_all || taken.fate == Fate::kept, "what is outside of the converted mixers stays");
    if (converted || fresh_of_all) fates.push_back({at.layer, p.name(), p.spec.shape, taken.fate, p.spec.init});
  }
  for (const auto& [name, tensor] : old) fates.push_back({MixerParameter(name).layer, name, tensor.shape(), Fate::dropped, {}});
  to.parameters().assign(next);
  to.take_tokenizer(from);
  return fates;
}

}  // namespace isomer
