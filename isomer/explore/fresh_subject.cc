#include <algorithm>
#include <cmath>
#include <sstream>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/base/rng.h"
#include "isomer/explore/subject.h"
#include "isomer/mixers/cost.h"
#include "isomer/models/model_dsf.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer_dsf.h"

namespace isomer {

namespace {
constexpr std::uint64_t kSeed = 1;

// What a page can show within a breath: a layer that is looked at is small.
constexpr Index kMostSize = 4096, kMostParameters = Index{1} << 21, kMostState = Index{1} << 17;
constexpr double kMostFlops = 2e7;

void append_vector(const std::string& word, Index width, std::vector<double>& x) {
  Rng rng(kSeed, hash_of(word));
  for (Index i = 0; i < width; ++i) x.push_back(rng.normal());
}

/// Queries and keys start near the input itself, so that like words attend to each other: what a mixer keeps of them shows. A
/// last projection that starts at zero (RWKV) would show nothing, and starts like the others.
graph::Graph recalling(graph::Graph graph) {
  for (graph::Node& node : graph.nodes) {
    auto* linear = std::get_if<graph::Linear>(&node.work);
    if (linear == nullptr) continue;
    if (node.parameters == "q" || node.parameters == "k")
      linear->weight = {.kind = graph::Init::Kind::near_identity, .a = 1, .b = 0.02};
    else if (&node == &graph.nodes.back() && linear->weight.kind == graph::Init::Kind::constant)
      linear->weight = {};
  }
  return graph;
}

void require_small(const graph::Graph& graph, const std::vector<MixerOption>& options, Index T) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    Index value = 0;
    if (options[i].kind == MixerOption::Kind::size && parse_number(graph.options[i].second, value))
      require(value <= kMostSize, options[i].name.c_str(), "expected at most ", kMostSize, " to look at, got ", value);
  }
  const Cost cost = cost_of(graph, T);
  Index parameters = 0;
  for (const graph::Node& node : graph.nodes) parameters += parameters_of(graph, node);
  require(parameters <= kMostParameters, graph.preset.c_str(), "expected at most ", kMostParameters,
          " parameters to look at, got ", parameters);
  require(cost.state_floats <= kMostState, graph.preset.c_str(), "expected a state of at most ", kMostState,
          " numbers to look at, got ", cost.state_floats);
  require(cost.flops_per_token <= kMostFlops, graph.preset.c_str(), "expected at most ", kMostFlops,
          " flops a token to look at, got ", cost.flops_per_token);
}

class FreshSubject : public Subject {
 public:
  FreshSubject(graph::Graph graph, std::vector<MixerOption> options, std::vector<std::string> words)
      : Subject(std::move(words)), options_(std::move(options)), mixer_(std::move(graph), parameters_, "") {
    initialise(parameters_, kSeed);
    for (const std::string& word : this->words()) append_vector(word, width(), x_);
  }
  [[nodiscard]] Index layers() const override { return 1; }
  [[nodiscard]] const Mixer<double>& mixer(Index) const override { return mixer_; }
  [[nodiscard]] const Parameters<double>& parameters() const override { return parameters_; }
  [[nodiscard]] std::string prefix(Index) const override { return ""; }
  [[nodiscard]] std::vector<MixerOption> options() const override { return options_; }
  void at(Index, Tape<double>& tape, const Look& look) const override { with(x_, tape, look); }
  [[nodiscard]] std::vector<std::vector<LawCall>> calls(Context& context) const override {
    Tape<double> tape(context, Record::no);
    std::vector<std::vector<LawCall>> all;
    with(x_, tape,
         [&](Var<double> x, std::span<const Var<double>> taken) { all.push_back(mixer_.law_calls(tape, x, {.taken = taken})); });
    return all;
  }
  [[nodiscard]] std::vector<double> outputs(const std::optional<Change>& change, Context& context) const override {
    std::vector<double> x = x_, y;
    if (change) {
      std::vector<double> other;
      append_vector(change->word, width(), other);
      std::ranges::copy(other, x.begin() + change->token * width());
    }
    Tape<double> tape(context, Record::no);
    with(x, tape, [&](Var<double> in, std::span<const Var<double>> taken) {
      const Var<double> out = mixer_.forward(tape, in, {.taken = taken});
      y.assign(out.value.data, out.value.data + out.value.size());
    });
    return y;
  }
  [[nodiscard]] std::string another_word(Index) const override { return "another word"; }

 private:
  [[nodiscard]] Index width() const { return mixer_.graph().width; }
  void with(std::vector<double> x, Tape<double>& tape, const Look& look) const {
    const std::vector<Var<double>> taken = from_other_layers(tape, mixer_.graph(), T(), kSeed);
    look(tape.input(contiguous(x.data(), {1, T(), 1, width()})), taken);
  }
  std::vector<MixerOption> options_;
  Parameters<double> parameters_;
  Mixer<double> mixer_;
  std::vector<double> x_;  // [T, width]
};
}  // namespace

std::unique_ptr<const Subject> fresh_subject(const FreshQuestion& question) {
  const Preset& preset = find_preset(question.preset);
  const Place place{.width = question.width};
  const Index T = Index(question.words.size());
  require(T > 0, "mixers", "expected words, got none");
  require(T <= kLongestSystem, "mixers", "expected at most ", kLongestSystem, " words, got ", T);
  graph::Graph graph = build_mixer(preset, place, question.settings);
  std::vector<MixerOption> options = options_of(preset, place, question.settings);
  require_small(graph, options, T);
  return std::make_unique<FreshSubject>(recalling(std::move(graph)), std::move(options), question.words);
}

std::vector<double> influence(const Subject& subject, const Subject::Change& change, Context& context) {
  const Index T = subject.T();
  require(change.token >= 0 && change.token < T, "token", "expected one below ", T, ", got ", change.token);
  const std::vector<double> y = subject.outputs({}, context), moved = subject.outputs(change, context);
  const Index n = Index(y.size()) / T;
  double mean = 0;
  for (const double v : y) mean += v * v / double(T);
  std::vector<double> all;
  for (Index t = 0; t < T; ++t) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += std::pow(moved[t * n + i] - y[t * n + i], 2);
    all.push_back(mean > 0 ? std::sqrt(sum / mean) : 0);
  }
  return all;
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace isomer
