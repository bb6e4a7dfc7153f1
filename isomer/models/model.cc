#include "isomer/models/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/autograd/dropout.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/recompute.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/laws/layout.h"
#include "isomer/models/readout.h"

namespace isomer {

namespace {
template <class T>
Var<T> matrix_parameter(Parameters<T>& parameters, const char* name, std::vector<Index> shape, const ModelConfig& config,
                        Reader reader) {
  return parameters.add({.name = name, .shape = std::move(shape), .init = graph::normal(config.deviation), .reader = reader}).var;
}

template <class T>
bool all_finite(std::span<const T> numbers) {
  return std::ranges::all_of(numbers, [](T number) { return std::isfinite(number); });
}

/// A copy that the backward pass still finds.
template <class T>
std::span<const std::int64_t> kept(Tape<T>& tape, std::span<const std::int64_t> numbers) {
  std::int64_t* copy = tape.template keep<std::int64_t>(Index(numbers.size()));
  std::ranges::copy(numbers, copy);
  return {copy, numbers.size()};
}

void expect_size(const char* what, std::size_t got, Index want) {
  require(Index(got) == want, "model", "expected ", want, " ", what, ", got ", got);
}
}  // namespace

Index count_of(const ModelConfig& config, const ModelInput& in) {
  if (config.kind == ModelKind::regression) return in.B;
  return std::ranges::count_if(in.labels, [](std::int64_t label) { return label >= 0; });
}

ModelInput part_of(const ModelInput& in, Index first, Index count) {
  const auto cut = [&](auto all) {
    const Index each = Index(all.size()) / in.B;
    return all.subspan(std::size_t(first * each), std::size_t(count * each));
  };
  return {.B = count,
          .T = in.T,
          .tokens = cut(in.tokens),
          .labels = cut(in.labels),
          .inputs = cut(in.inputs),
          .targets = cut(in.targets),
          .lengths = cut(in.lengths),
          .types = cut(in.types),
          .known = cut(in.known),
          .offsets = in.offsets};
}

template <class T>
Model<T>::Model(const ModelConfig& config, Parameters<T>& parameters) : config_(config) {
  check(config);
  const Index D = config.width;
  for (std::size_t i = 0; i < config.convolutions.size(); ++i)
    convolutions_.emplace_back(parameters, "convolutions." + std::to_string(i), i == 0 ? config.features : D, D,
                               config.convolutions[i]);
  if (config.vocabulary > 0)
    embedding_.emplace(parameters, "embedding", config.vocabulary, D, graph::normal(config.deviation));
  else if (convolutions_.empty())
    input_.emplace(parameters, "input", config.features, D,
                   typename Linear<T>::Options{.bias = true, .weight = graph::normal(1 / std::sqrt(double(config.features)))});
  if (config.kind == ModelKind::table) known_.emplace(parameters, "known", 1, D, typename Linear<T>::Options{.bias = true});
  if (config.class_token) class_token_ = matrix_parameter(parameters, "class_token", {1, D}, config, Reader::any);
  if (config.fixed_positions)
    positions_ = parameters
                     .add({.name = "positions.weight",
                           .shape = {config.length, D},
                           .init = {.kind = graph::Init::Kind::sines},
                           .training = graph::Training::fixed})
                     .var;
  else if (config.positions)
    positions_ = matrix_parameter(parameters, "positions.weight", {config.length, D}, config, Reader::any);
  if (config.types > 0) types_.emplace(parameters, "types", config.types, D, graph::normal(config.deviation));
  const NormOptions norm{.kind = config.norm, .eps = config.norm_eps};
  if (config.front_norm) front_norm_.emplace(parameters, "front_norm", D, norm);
  // Blocks hold handles and are not to move once made, for closures point to them.
  blocks_.reserve(config.layers.size());
  for (Index layer = 0; layer < Index(config.layers.size()); ++layer)
    blocks_.emplace_back(layer_graph(config, layer), parameters, "layers." + std::to_string(layer), block_options(config, layer));
  link_blocks();
  if (config.last_norm) norm_.emplace(parameters, "norm", D, norm);
  const typename Linear<T>::Options dense{.bias = true, .weight = graph::normal(1 / std::sqrt(double(D)))};
  for (Index i = 0; config.kind == ModelKind::autoencoder && i < kDecoderLayers; ++i) {
    const std::string name = "decoder." + std::to_string(i);
    decoder_.push_back({{parameters, name + ".norm", D, norm}, {parameters, name + ".linear", D, D, dense}});
  }
  if (config.pooler) pooler_.emplace(parameters, "pooler", D, D, dense);
  if (config.head_transform)
    transform_.emplace(Decoder{{parameters, "transform.norm", D, norm}, {parameters, "transform.linear", D, D, dense}});
  const bool of_tokens = labels_tokens(config.kind);
  if (config.kind == ModelKind::embedding) return;
  if (config.head_hidden > 0) head_hidden_.emplace(parameters, "head_hidden", D, config.head_hidden, dense);
  const Index read = config.head_hidden > 0 ? config.head_hidden : D;
  head_ = of_tokens && config.tied
              ? embedding_->weight()
              : matrix_parameter(parameters, "head.weight", {labels_of(config), read}, config, Reader::products);
  if (of_tokens && !config.head_bias) return;
  head_bias_ =
      parameters.add({.name = "head.bias", .shape = {labels_of(config)}, .init = graph::constant(0), .decay = Decay::no}).var;
}

template <class T>
std::vector<const graph::Graph*> Model<T>::graphs() const {
  std::vector<const graph::Graph*> all;
  for (const Block<T>& block : blocks_) all.push_back(&block.mixer().graph());
  for (const Block<T>& block : blocks_)
    if (block.mlp_graph() != nullptr) all.push_back(block.mlp_graph());
  return all;
}

template <class T>
void Model<T>::link_blocks() {
  std::vector<const graph::Graph*> all = graphs();
  all.resize(blocks_.size());
  links_.resize(all.size());
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    links_[layer].from = links_of(all, layer);
    // Nobody asks a layer for what no other takes.
    for (const Link& link : links_[layer].from) links_[link.layer].given = all[link.layer]->given.size();
  }
}

template <class T>
auto Model<T>::flows(Tape<T>& tape) const -> std::span<Flow> {
  const auto vars = [&](std::size_t count) {
    Var<T>* all = tape.template keep<Var<T>>(Index(count));
    std::uninitialized_fill_n(all, count, Var<T>());
    return std::span<Var<T>>(all, count);
  };
  Flow* all = tape.template keep<Flow>(Index(links_.size()));
  for (std::size_t layer = 0; layer < links_.size(); ++layer)
    new (all + layer) Flow{vars(1 + links_[layer].from.size()), vars(1 + links_[layer].given)};
  return {all, links_.size()};
}

template <class T>
auto Model<T>::flow_into(std::span<Flow> flows, std::size_t layer, Var<T> x) const -> const Flow& {
  const Flow& flow = flows[layer];
  const std::vector<Link>& from = links_[layer].from;
  flow.in[0] = x;
  for (std::size_t i = 0; i < from.size(); ++i) flow.in[1 + i] = flows[from[i].layer].out[1 + from[i].value];
  return flow;
}

template <class T>
void Model<T>::check_input(const ModelInput& in, const States* states) const {
  const Index tokens = in.B * in.T;
  require(in.B > 0 && in.T > 0, "model", "expected at least one token, got ", in.B, " sequences of ", in.T);
  if (embedding_) expect_size("tokens", in.tokens.size(), tokens);
  if (!embedding_) expect_size("numbers as inputs", in.inputs.size(), tokens * config_.features);
  require(in.lengths.empty() || convolutions_.empty(), "model", "expected whole sequences for convolutions, got lengths");
  if (!in.types.empty()) expect_size("types", in.types.size(), tokens);
  if (config_.kind == ModelKind::table) {
    const Index rows = Index(in.known.size()) / in.B;
    require(rows > 0 && rows <= in.T && Index(in.known.size()) == rows * in.B, "model",
            "expected labels of the first rows, as many of each of ", in.B, " tables of ", in.T, ", got ", in.known.size());
    require(in.lengths.empty(), "model", "expected tables without padding, got lengths");
  } else {
    require(in.known.empty(), "model", "expected a table for labels that are known, got a model of kind ", name_of(config_.kind));
  }
  for (const std::int64_t type : in.types)
    require(type >= 0 && type < config_.types, "model", "expected types below ", config_.types, ", got ", type);
  if (!in.lengths.empty()) expect_size("lengths", in.lengths.size(), in.B);
  for (const Index length : in.lengths)
    require(length > 0 && length <= in.T, "model", "expected lengths from 1 to ", in.T, ", got ", length);
  if (!in.offsets.empty())
    require(config_.kind == ModelKind::language, "model", "expected a language model for packed sequences, got one of kind ",
            name_of(config_.kind));
  const auto parts = sequences("model", in.B, in.T, in.offsets);
  if (states != nullptr)
    require(states->size() == this->states() && states->front().batch() == Index(parts.size()), "model", "expected states of ",
            this->states(), " layers and ", parts.size(), " sequences, got ", states->size(), " and ",
            states->empty() ? 0 : states->front().batch());
  for (std::size_t i = 0; positions_.present() && i < parts.size(); ++i) {
    const Index end = tokens_of(config_, parts[i].length) + (states == nullptr ? 0 : Index((*states)[0].positions()[i]));
    const Index own = class_token_.present() ? 1 : 0;
    require(end + own <= config_.length, "model", "expected at most ", config_.length - own, " tokens, got ", end);
  }
}

template <class T>
void Model<T>::check_targets(const ModelInput& in) const {
  require(config_.kind != ModelKind::embedding, "model", "expected a model with labels or targets, got one of kind embedding");
  if (config_.kind == ModelKind::regression)
    expect_size("numbers as targets", in.targets.size(), in.B * config_.outputs);
  else
    expect_size("labels", in.labels.size(), labels_tokens(config_.kind) ? in.B * in.T : in.B);
}

template <class T>
Var<T> Model<T>::placed(Tape<T>& tape, Var<T> x, std::span<const std::int64_t> types, const Sequences& places) const {
  const Index B = x.dim(0), tokens = x.dim(1);
  if (config_.embedding_scale != 1) x = ops::unary(tape, Unary::affine, x, {.a = config_.embedding_scale, .b = 0});
  if (class_token_.present()) {
    const Var<T> first = ops::append_tokens(tape, Var<T>{}, class_token_, {B, 1, 1, config_.width});
    x = ops::append_tokens(tape, first, x, {B, tokens, 1, config_.width});
  }
  if (positions_.present()) x = ops::add(tape, x, ops::position_table(tape, positions_, B, x.dim(1), places));
  if (types_) {
    // Where nobody names them all tokens are of the first type.
    std::int64_t* first = tape.template keep<std::int64_t>(1);
    *first = 0;
    x = ops::add(
        tape, x,
        (*types_)(tape, types.empty() ? contiguous<const std::int64_t>(first, {1, 1}) : contiguous(types.data(), {B, tokens})));
  }
  return front_norm_ ? (*front_norm_)(tape, x) : x;
}

template <class T>
Var<T> Model<T>::with_known(Tape<T>& tape, Var<T> x, const ModelInput& in) const {
  const Index rows = Index(in.known.size()) / in.B, others = in.T - rows;
  const Var<T> known = (*known_)(tape, values<T>(tape, in.known, {in.B, rows, 1, 1})),
               none = tape.make({1, 1, 1, config_.width}, {});
  std::fill_n(none.value.data, config_.width, T(0));
  return ops::add(tape, x, ops::append_tokens(tape, known, none, {in.B, others, 1, config_.width}));
}

template <class T>
Var<T> Model<T>::front(Tape<T>& tape, const ModelInput& in, const Along& along) const {
  const Pass& pass = along.pass;
  Var<T> x = embedding_ ? (*embedding_)(tape, contiguous(in.tokens.data(), {in.B, in.T}))
                        : values<T>(tape, in.inputs, {in.B, in.T, 1, config_.features});
  if (input_) x = (*input_)(tape, x);
  for (const Convolution<T>& one : convolutions_) x = ops::unary(tape, Unary::gelu_erf, one(tape, x));
  if (known_) x = with_known(tape, x, in);
  Sequences places{.offsets = along.offsets};
  if (along.states != nullptr) places.positions = (*along.states)[0].positions();
  x = placed(tape, x, in.types, places);
  const double rate = pass.dropout ? config_.dropout : 0;
  return ops::dropout(tape, x,
                      {.rate = rate,
                       .seed = pass.seed,
                       .stream = pass.step * std::uint64_t(streams()),
                       .first = pass.first * x.dim(1) * config_.width});
}

template <class T>
std::span<const Index> Model<T>::kept_lengths(Tape<T>& tape, const ModelInput& in) const {
  Index* copy = tape.template keep<Index>(Index(in.lengths.size()));
  std::ranges::transform(in.lengths, copy, [&](Index length) { return length + (class_token_.present() ? 1 : 0); });
  return {copy, in.lengths.size()};
}

template <class T>
Var<T> Model<T>::run_block(Tape<T>& tape, const Flow& flow, std::size_t layer, const Along& along) const {
  const Pass& pass = along.pass;
  StateValues<T>* state = along.states != nullptr ? &(*along.states)[layer] : nullptr;
  StateValues<T>* mlp = along.states != nullptr ? mlp_state(*along.states, layer) : nullptr;
  const DropoutOptions dropout{.rate = pass.dropout ? config_.dropout : 0,
                               .seed = pass.seed,
                               .stream = pass.step * std::uint64_t(streams()) + 1 + 2 * layer,
                               .first = pass.first * flow.in[0].dim(1) * config_.width};
  const auto forward = [block = &blocks_[layer], window = pass.window, hidden = pass.hidden, offsets = along.offsets,
                        lengths = along.lengths, seen = along.seen, state, mlp,
                        dropout](Tape<T>& on, std::span<const Var<T>> in, std::span<Var<T>> out) {
    out[0] = block->forward(on, in[0], dropout,
                            {.taken = in.subspan(1),
                             .given = out.subspan(1),
                             .offsets = offsets,
                             .lengths = lengths,
                             .window = window,
                             .seen = seen,
                             .hidden = hidden,
                             .state = state},
                            mlp);
  };
  // A state goes on, so that a block that carries one runs once.
  if (state != nullptr || (tape.recording() && !pass.recompute))
    forward(tape, flow.in, flow.out);
  else
    ops::recompute<T>(tape, flow.in, flow.out, forward);
  return flow.out[0];
}

template <class T>
Var<T> Model<T>::blocks(Tape<T>& tape, Var<T> x, const Along& along) const {
  const std::span<Flow> all = flows(tape);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) x = run_block(tape, flow_into(all, layer, x), layer, along);
  return x;
}

template <class T>
ModelResult Model<T>::loss(Tape<T>& tape, const ModelInput& in, const Pass& pass, States* states) const {
  check_input(in, states);
  check_targets(in);
  const Along along{pass, kept(tape, in.offsets), kept_lengths(tape, in), states, Index(in.known.size()) / in.B};
  const Var<T> x = blocks(tape, front(tape, in, along), along);
  switch (config_.kind) {
    case ModelKind::language:
    case ModelKind::table:
    case ModelKind::masked: return read_labels(tape, transformed(tape, normed(tape, x)), in, pass);
    case ModelKind::autoencoder: return read_labels(tape, decoded(tape, normed(tape, x)), in, pass);
    case ModelKind::regression: return read_targets(tape, normed(tape, last_token(x)), in, pass);
    default: return read_labels(tape, transformed(tape, pooled(tape, normed(tape, x), in)), in, pass);
  }
}

template <class T>
ModelOutput<T> Model<T>::logits(Tape<T>& tape, const ModelInput& in, const Pass& pass) const {
  check_input(in);
  const Along along{pass, kept(tape, in.offsets), kept_lengths(tape, in), nullptr, Index(in.known.size()) / in.B};
  const Var<T> hidden = normed(tape, blocks(tape, front(tape, in, along), along));
  switch (config_.kind) {
    case ModelKind::language:
    case ModelKind::table:
    case ModelKind::masked: return {hidden, projected(tape, transformed(tape, hidden))};
    case ModelKind::embedding: return {hidden, ops::norm(tape, pooled(tape, hidden, in), {.kind = Norm::l2, .eps = 1e-12})};
    case ModelKind::autoencoder: return {hidden, projected(tape, decoded(tape, hidden))};
    case ModelKind::regression: return {hidden, ops::linear(tape, last_token(hidden), head_, head_bias_)};
    default: return {hidden, projected(tape, transformed(tape, pooled(tape, hidden, in)))};
  }
}

template <class T>
std::string Model<T>::name_of_layer(std::size_t layer) const {
  return "layer " + std::to_string(layer) + " (" + blocks_[layer].mixer().graph().preset + ")";
}

template <class T>
std::string Model<T>::first_not_finite(Tape<T>& tape, const ModelInput& in, const Pass& pass) const {
  check_input(in);
  const auto finite = [](Var<T> x) { return all_finite<T>({x.value.data, std::size_t(x.value.size())}); };
  tape.clear();
  const typename Tape<T>::Scope scope(tape);
  return tape.without_recording([&]() -> std::string {
    const Along along{pass, in.offsets, kept_lengths(tape, in), nullptr, Index(in.known.size()) / in.B};
    Var<T> x = front(tape, in, along);
    if (!finite(x)) return name_of_front();
    const std::span<Flow> all = flows(tape);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      x = run_block(tape, flow_into(all, layer, x), layer, along);
      if (!finite(x)) return name_of_layer(layer);
    }
    return std::isfinite(loss(tape, in, pass).loss) ? "" : "the output";
  });
}

template <class T>
std::string Model<T>::first_gradient_not_finite(const Parameters<T>& parameters) const {
  // Parameters are added from front to back, so the backward pass comes to them in reverse.
  const auto& all = parameters.all();
  const auto spoiled = std::find_if(all.rbegin(), all.rend(), [](const Parameter<T>& p) { return !all_finite<T>(p.gradient()); });
  if (spoiled == all.rend()) return "";
  const std::string& name = spoiled->name();
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer)
    if (name.starts_with("layers." + std::to_string(layer) + ".")) return name_of_layer(layer);
  if (name.starts_with("shared.")) return "the layers with " + name;
  const bool front = std::ranges::any_of(
      std::array{"embedding.", "input.", "convolutions.", "class_token", "positions.", "types.", "front_norm.", "known."},
      [&](const char* start) { return name.starts_with(start); });
  return front ? name_of_front() : "the output";
}

template <class T>
void Model<T>::visit_blocks(Tape<T>& tape, const ModelInput& in, const Visit& visit) const {
  check_input(in);
  const typename Tape<T>::Scope scope(tape);
  tape.without_recording([&] {
    const Pass plain;
    const Along along{plain, in.offsets, kept_lengths(tape, in), nullptr, Index(in.known.size()) / in.B};
    Var<T> x = front(tape, in, along);
    const std::span<Flow> all = flows(tape);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Flow& flow = flow_into(all, layer, x);
      visit(Index(layer), x, flow.pass().taken);
      x = run_block(tape, flow, layer, along);
    }
  });
}

template class Model<float>;
template class Model<double>;

}  // namespace isomer
