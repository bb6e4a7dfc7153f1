// isomer show: one mixer with its options, equations and costs, and the form that its law takes.
#include <optional>

#include "cli/command.h"
#include "cli/report.h"
#include "cli/show_dsf.h"
#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/laws/law.h"
#include "isomer/mixers/cost.h"
#include "isomer/mixers/equations.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/mixers/preset.h"
#include "isomer/models/model_files.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string preset, prompt;
  std::vector<std::string> set;
  Index width = 256, layer = 0;
  std::optional<Index> T = {};
  int threads = 0;
  bool json = false, dsf = false;

  /// Systems are for short sequences, costs for long ones.
  [[nodiscard]] Index tokens() const { return T.value_or(dsf ? 16 : 1024); }
};

/// What Form::automatic takes for a call, and why.
struct Taken {
  std::string direction;
  Index T;
  Choice choice;
  std::string why;
};

std::vector<Taken> taken_of(const graph::Graph& graph, Index tokens) {
  std::vector<Taken> all;
  for (const graph::Node& node : graph.nodes) {
    const auto* law = std::get_if<graph::Law>(&node.work);
    if (law == nullptr) continue;
    const auto add = [&](const char* direction, Index T, bool taped) {
      const Choice choice = T == 1 ? Choice{Form::step, 0} : plan_of(graph, node, T, taped);
      all.push_back({direction, T, choice, law->law->plan_reason(graph::law_sizes(graph, node, 1, T), choice)});
    };
    add("forward", tokens, false);
    add("forward+backward", tokens, true);
    if (graph::causal(graph)) add("forward", 1, false);
  }
  return all;
}

std::string form_text(const Choice& choice) {
  const std::string name(name_of(choice.form));
  return choice.form == Form::chunk && choice.chunk > 0 ? name + " " + std::to_string(choice.chunk) : name;
}

struct Shown {
  const Preset& preset;
  graph::Graph graph;
  std::vector<MixerOption> options;
  Cost cost;
  StateDimension dimension;
  std::vector<Taken> taken;
};

Shown shown_of(const Request& request) {
  if (request.preset.empty()) throw Error("expected a preset (isomer list has them), got none");
  const Preset& preset = find_preset(request.preset);
  const Settings settings = settings_of(request.set);
  const Place place{.width = request.width, .layer = request.layer, .layers = request.layer + 1, .before = request.layer};
  const graph::Graph graph = build_mixer(preset, place, settings);
  return {preset,
          graph,
          options_of(preset, place, settings),
          cost_of(graph, request.tokens()),
          state_dimension(graph),
          taken_of(graph, request.tokens())};
}

Json as_json(const Shown& shown, const Request& request) {
  Json options = Json::array(), forms = Json::array();
  for (std::size_t i = 0; i < shown.options.size(); ++i)
    options.push(Json::object({{"name", shown.options[i].name},
                               {"value", shown.graph.options[i].second},
                               {"default", shown.options[i].fallback},
                               {"help", shown.options[i].help}}));
  for (const Taken& t : shown.taken)
    forms.push(Json::object(
        {{"direction", t.direction}, {"T", t.T}, {"form", name_of(t.choice.form)}, {"chunk", t.choice.chunk}, {"why", t.why}}));
  const Json dsf = Json::object(
      {{"features", shown.dimension.features}, {"channels", shown.dimension.channels}, {"grows", shown.dimension.grows}});
  return Json::object({{"preset", shown.preset.name},
                       {"law", shown.graph.law},
                       {"source", shown.preset.source},
                       {"summary", shown.preset.summary},
                       {"fingerprint", graph::fingerprint(shown.graph)},
                       {"width", request.width},
                       {"causal", graph::causal(shown.graph)},
                       {"options", options},
                       {"equations", equations(shown.graph)},
                       {"parameters", shown.cost.parameters},
                       {"state_floats", shown.cost.state_floats},
                       {"state_floats_per_token", shown.cost.state_per_token},
                       {"flops_per_token", shown.cost.flops_per_token},
                       {"dsf", dsf},
                       {"forms", forms}});
}

std::string state_text(const Cost& cost) {
  std::string text = std::to_string(cost.state_floats) + " floats";
  if (cost.state_per_token > 0)
    text = std::to_string(cost.state_per_token) + " floats for every token seen" + (cost.state_floats > 0 ? ", and " + text : "");
  return text;
}

std::string dimension_text(const StateDimension& d) {
  const std::string channels = std::to_string(d.channels) + " channels";
  if (d.grows)
    return channels + ", one number in each for every token seen; as one state of fixed size it would need infinitely many";
  return std::to_string(d.features * d.channels) + " = " + std::to_string(d.features) + " for each of " + channels;
}

void print(const Shown& shown, const Request& request) {
  std::cout << shown.preset.name << ": " << shown.preset.summary << "\nsource: " << shown.preset.source
            << "\nlaw: " << shown.graph.law << "  " << find_law(shown.graph.law).equation() << "\n\nOptions at width "
            << request.width << "\n";
  Table options({"  option", "value", "default", "meaning"});
  for (std::size_t i = 0; i < shown.options.size(); ++i)
    options.add({"  " + shown.options[i].name, shown.graph.options[i].second, shown.options[i].fallback, shown.options[i].help});
  options.print();
  std::cout << "\nEquations\n";
  for (const std::string& line : equations(shown.graph)) std::cout << "  " << line << '\n';
  std::cout << "\nCosts of a layer\n  parameters       " << shown.cost.parameters << "\n  state            "
            << state_text(shown.cost) << "\n  flops per token  " << formatted("%.0f", shown.cost.flops_per_token)
            << " (forward, sequences of " << request.tokens() << ")\n  state dimension  " << dimension_text(shown.dimension)
            << "\n\nForms that auto takes; the number of threads changes none\n";
  Table forms({"  direction", "T", "form", "why"});
  for (const Taken& t : shown.taken) forms.add({"  " + t.direction, std::to_string(t.T), form_text(t.choice), t.why});
  forms.print();
}

/// Is it the folder of a trained model, or a checkpoint of a run, and not a mixer as it starts?
bool is_model(const std::string& name) { return is_folder(run_path(name).run); }

int show_request(const Request& request) {
  if (is_model(request.preset)) {
    if (!request.dsf) throw Error("expected --dsf with a model, got none");
    if (request.prompt.empty()) throw Error("expected --prompt with a model, got none");
    Context context(request.threads);
    show_model_dsf({.model = request.preset, .prompt = request.prompt, .layer = request.layer, .json = request.json}, context);
    return kDone;
  }
  if (!request.prompt.empty()) throw Error("--prompt: expected the folder of a run or of a model, got " + request.preset);
  const Shown shown = shown_of(request);
  Context context(request.threads);
  if (request.dsf)
    show_dsf(shown.graph, {.T = request.tokens(), .json = request.json}, context);
  else if (request.json)
    print_json(context, Json::Array{as_json(shown, request)});
  else
    print(shown, request);
  return kDone;
}
}  // namespace

Command show_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("PRESET", request->preset, "Which mixer; with --dsf also the folder of a run or of a model");
  options.add("--prompt", request->prompt, "What the model reads").value("TEXT");
  options.set(request->set, "An option of the mixer; may be repeated");
  options.add("--width", request->width, "Channels of the layer").from_to(1, 1 << 20).value("N");
  options.add("--layer", request->layer, "Which layer of a stack of them, from 0: some have more in later ones [0]")
      .from_to(0, 4095)
      .value("N");
  options.add("--T", request->T, "Tokens of a sequence; 1024, with --dsf 16").from_to(1, 1 << 20).value("N");
  options.flag("--dsf", request->dsf,
               "Its laws as dynamical systems, as the mixer starts and on random tokens: state, eigenvalues, memory horizon and\n"
               "effective attention matrix");
  options.flag("--json", request->json, "Print one JSON object");
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer show gla --width 512 --set heads=8 --set position=selective-rope\n"
      "  isomer show mamba --width 64 --dsf --T 12\n"
      "  isomer show runs/text --dsf --prompt \"The end\" --json");
  return [request] { return show_request(*request); };
}

}  // namespace isomer::cli
