#include "isomer/nn/mixer.h"

#include <cmath>
#include <map>

#include "isomer/base/error.h"
#include "isomer/nn/mixer_run.h"

namespace isomer {

namespace {
std::vector<Index> rows(Index heads, Index size) {
  return heads == 1 ? std::vector<Index>{size} : std::vector<Index>{heads, size};
}

/// Adds the parameters of nodes to the store; nodes with one name share them.
template <class T>
class Adder {
 public:
  Adder(const graph::Graph& graph, Parameters<T>& store, const std::string& prefix)
      : graph_(graph), store_(store), prefix_(prefix) {}

  using Weights = NodeWeights<T>;

  Weights operator()(const graph::Node& node, const graph::Linear& w) {
    return {add(weight_of(node, w)), w.bias ? add(bias_of(node, w)) : Var<T>()};
  }
  Weights operator()(const graph::Node& node, const graph::HeadLinear& w) {
    if (w.given) return {};
    const Index H = node.heads, N = node.size, K = input(node).size;
    const std::vector<Index> weight = w.shared ? std::vector<Index>{N, K} : std::vector<Index>{H, N, K};
    const std::vector<Index> bias = w.shared ? std::vector<Index>{N} : std::vector<Index>{H, N};
    // Rows of unit length are computed, and one output a head is a sum, not a product.
    const Reader reader = w.unit_rows || N == 1 ? Reader::any : Reader::products;
    return {add({name(node, ".weight"), weight, w.weight, Decay::yes, w.training, reader}),
            w.bias ? add({name(node, ".bias"), bias, w.bias_init, Decay::no, w.training}) : Var<T>()};
  }
  Weights operator()(const graph::Node& node, const graph::Parameter& w) {
    ParameterSpec spec{name(node, ""), rows(node.heads, node.size), w.init, Decay::no, w.training};
    if (!w.shared) return {add(spec)};
    spec.name = graph::shared_name(graph_, node);
    return {store_.share(spec).var};
  }
  Weights operator()(const graph::Node& node, const graph::Convolution& w) {
    const Index C = node.heads * node.size;
    return {add({name(node, ".weight"), {C, w.width}, w.weight}),
            w.bias ? add({name(node, ".bias"), {C}, graph::constant(0), Decay::no}) : Var<T>()};
  }
  Weights operator()(const graph::Node& node, const graph::Normalise& w) {
    const std::vector<Index> shape = rows(w.shared ? 1 : node.heads, node.size);
    return {w.weight ? add({name(node, ".weight"), shape, graph::constant(w.start), Decay::no}) : Var<T>(),
            w.bias ? add({name(node, ".bias"), shape, graph::constant(0), Decay::no}) : Var<T>()};
  }
  Weights operator()(const graph::Node& node, const graph::PositionTable& w) {
    return {add({name(node, ".weight"), {w.length, node.heads * node.size}, graph::normal(0.02), Decay::no})};
  }
  Weights operator()(const graph::Node& node, const graph::Psi& w) {
    // As the authors' listing has it: uniform by the number of inputs of each layer, one and `hidden`.
    const auto uniform = [](double bound) { return graph::Init{graph::Init::Kind::uniform, -bound, bound}; };
    const graph::Init in = uniform(1), out = uniform(1 / std::sqrt(double(w.hidden)));
    const std::vector<Index> hidden = rows(w.shared ? 1 : w.outputs, w.hidden);
    return {add({name(node, ".hidden.weight"), hidden, in}), add({name(node, ".hidden.bias"), hidden, in, Decay::no}),
            add({name(node, ".output.weight"), {w.outputs, w.hidden}, out}),
            add({name(node, ".output.bias"), {w.outputs}, out, Decay::no})};
  }
  Weights operator()(const graph::Node&, const auto&) { return {}; }

  [[nodiscard]] ParameterSpec weight_of(const graph::Node& node, const graph::Linear& w) const {
    return {.name = name(node, ".weight"),
            .shape = {node.size, input(node).heads * input(node).size},
            .init = w.weight,
            .reader = Reader::products};
  }
  [[nodiscard]] ParameterSpec bias_of(const graph::Node& node, const graph::Linear& w) const {
    return {name(node, ".bias"), {node.size}, w.bias_init, Decay::no};
  }

 private:
  [[nodiscard]] std::string name(const graph::Node& node, const char* what) const {
    return prefix_ + (prefix_.empty() ? "" : ".") + node.parameters + what;
  }
  [[nodiscard]] const graph::Node& input(const graph::Node& node) const { return graph_.nodes[std::size_t(node.inputs[0])]; }
  Var<T> add(ParameterSpec spec) {
    const auto found = own_.find(spec.name);
    if (found != own_.end()) return found->second;
    const Var<T> var = store_.add(spec).var;
    own_.emplace(spec.name, var);
    return var;
  }

  const graph::Graph& graph_;
  Parameters<T>& store_;
  const std::string& prefix_;
  std::map<std::string, Var<T>> own_;
};

template <class T>
void expect_sequences(Var<T> x, std::span<const std::int64_t> offsets, Index want) {
  const Index got = Sequences{.offsets = offsets}.count(x.dim(0));
  require(got == want, "mixer", "expected ", want, " sequences as in the state, got ", got);
}
}  // namespace

template <class T>
void Mixer<T>::add_products(Parameters<T>& parameters, const std::string& prefix) {
  const Adder<T> specs(graph_, parameters, prefix);
  std::map<std::string, int> uses;
  for (const graph::Node& node : graph_.nodes) ++uses[node.parameters];
  std::map<int, std::size_t> product_of_input;
  for (int i = 0; i < int(graph_.nodes.size()); ++i) {
    const graph::Node& node = graph_.nodes[std::size_t(i)];
    // A weight that several nodes share stands alone.
    if (!std::holds_alternative<graph::Linear>(node.work) || uses[node.parameters] > 1) continue;
    const auto [at, is_new] = product_of_input.emplace(node.inputs[0], products_.size());
    if (is_new) products_.emplace_back();
    product_of_[std::size_t(i)] = int(at->second);
    products_[at->second].nodes.push_back(i);
    products_[at->second].sizes.push_back(node.size);
  }
  for (Product& product : products_) {
    std::vector<ParameterSpec> weights, biases;
    bool biased = false;
    for (const int i : product.nodes) {
      const graph::Node& node = graph_.nodes[std::size_t(i)];
      const auto& w = std::get<graph::Linear>(node.work);
      weights.push_back(specs.weight_of(node, w));
      biases.push_back(specs.bias_of(node, w));
      if (!w.bias) biases.back().name.clear();
      biased = biased || w.bias;
    }
    product.weights.weight = parameters.add_block(weights);
    if (biased) product.weights.bias = parameters.add_block(biases);
  }
}

template <class T>
Mixer<T>::Mixer(graph::Graph graph, Parameters<T>& parameters, const std::string& prefix)
    : graph_(std::move(graph)),
      causal_(graph::causal(graph_)),
      whole_rows_(graph::reads_images(graph_)),
      meets_elsewhere_(graph::meets_outside_laws(graph_)),
      taken_(graph::taken(graph_)),
      product_of_(graph_.nodes.size(), -1),
      schedule_(schedule_of(graph_)),
      windows_(std::make_unique<Windows>()),
      weights_(graph_.nodes.size()) {
  add_products(parameters, prefix);
  Adder<T> add(graph_, parameters, prefix);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const graph::Node& node = graph_.nodes[i];
    if (product_of_[i] >= 0) continue;
    weights_[i] = std::visit([&](const auto& work) { return add(node, work); }, node.work);
  }
}

template <class T>
std::span<const Var<T>> Mixer<T>::run(Tape<T>& tape, Var<T> x, MixerState<T>* state, const MixerPass<T>& pass) const {
  require(x.dim(2) == 1 && x.dim(3) == graph_.width, "mixer", "expected x [B, T, 1, ", graph_.width, "], got [", x.dim(0), ", ",
          x.dim(1), ", ", x.dim(2), ", ", x.dim(3), "]");
  require(pass.offsets.empty() || !whole_rows_, "mixer", "expected rows of one image each, got packed or padded ones for ",
          graph_.preset, " with an image");
  if (pass.state != nullptr) expect_sequences(x, pass.offsets, pass.state->batch());
  MixerRun<T> run(*this, tape, x, state, pass);
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const graph::Node& node = graph_.nodes[std::size_t(taken_[i])];
    const char* name = std::get<graph::FromFirst>(node.work).name.c_str();
    require(i < pass.taken.size(), "mixer", "expected ", name, " of the first layer of ", graph_.preset, ", got none");
    const Var<T> value = pass.taken[i];
    const Shape4 want{x.dim(0), x.dim(1), node.heads, node.size};
    if (value.shape() != want)
      fail("mixer", "expected ", name, " of the first layer of ", graph_.preset, " as ", text_of({want.begin(), want.end()}),
           ", got ", text_of({value.shape().begin(), value.shape().end()}));
    run.values()[std::size_t(taken_[i])] = value;
  }
  run();
  if (pass.state != nullptr) pass.state->advance(pass.offsets, x.dim(1));
  ISOMER_ASSERT(pass.given.size() <= graph_.given.size(), "a mixer gives what its graph says");
  for (std::size_t i = 0; i < pass.given.size(); ++i) pass.given[i] = run.values()[std::size_t(graph_.given[i].node)];
  return run.values();
}

template <class T>
const BoundLaw& Mixer<T>::law_at(std::size_t node, Index window) const {
  const BoundLaw& own = *std::get<graph::Law>(graph_.nodes[node].work).law;
  if (window <= 0) return own;
  const std::scoped_lock lock(windows_->mutex);
  const auto [at, is_new] = windows_->laws.try_emplace({node, window});
  if (is_new) {
    Settings settings = own.settings();
    // A law that sees everything, or knows no window, stays as it is.
    if (const auto found = settings.find("window"); found != settings.end()) {
      found->second = std::to_string(window);
      at->second = own.law().bind(settings);
    }
  }
  return at->second != nullptr ? *at->second : own;
}

template <class T>
Var<T> Mixer<T>::forward(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass) const {
  // A causal one does not see what is behind a token.
  const bool padded = !causal_ && std::ranges::any_of(pass.lengths, [&](Index length) { return length < x.dim(1); });
  return padded ? without_padding(tape, x, pass) : run(tape, x, nullptr, pass).back();
}

template <class T>
Var<T> Mixer<T>::without_padding(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass) const {
  require(pass.hidden.empty(), "mixer", "expected rows without padding to hide keys of, got shorter ones");
  ISOMER_ASSERT(taken_.empty() && pass.given.empty(), "mixers that share values are causal");
  const std::span offsets(tape.template keep<std::int64_t>(x.dim(0) + 1), std::size_t(x.dim(0) + 1));
  offsets[0] = 0;
  for (std::size_t b = 0; b < pass.lengths.size(); ++b) offsets[b + 1] = offsets[b] + pass.lengths[b];
  MixerPass<T> packed = pass;
  packed.lengths = {};
  packed.offsets = offsets;
  const Var<T> y = run(tape, ops::pack_tokens<T>(tape, x, offsets), nullptr, packed).back();
  return ops::unpack_tokens<T>(tape, y, offsets, x.dim(1));
}

template <class T>
std::span<const Var<T>> Mixer<T>::values(Tape<T>& tape, Var<T> x, const MixerPass<T>& pass) const {
  return run(tape, x, nullptr, pass);
}

template <class T>
Var<T> Mixer<T>::prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass) const {
  expect_sequences(x, pass.offsets, state.batch());
  if (x.dim(1) == 0) return tape.make(x.shape(), {});
  const Var<T> y = tape.without_recording([&] { return run(tape, x, &state, pass).back(); });
  state.advance(pass.offsets, x.dim(1));
  return y;
}

template <class T>
Var<T> Mixer<T>::step(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass) const {
  require(x.dim(1) == 1, "mixer", "expected one token for a step, got ", x.dim(1));
  return prefill(tape, x, state, pass);
}

template class Mixer<float>;
template class Mixer<double>;

}  // namespace isomer
