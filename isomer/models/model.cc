#include "isomer/models/model.h"

#include <algorithm>
#include <cmath>

#include "isomer/autograd/dropout.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/loss.h"
#include "isomer/autograd/recompute.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/laws/layout.h"

namespace isomer {

namespace {
template <class T>
Var<T> matrix_parameter(Parameters<T>& parameters, const char* name, Index rows, const ModelConfig& config, Reader reader) {
  return parameters.add({.name = name, .shape = {rows, config.width}, .init = graph::normal(config.deviation), .reader = reader})
      .var;
}

/// Numbers of an input, as values of the tape.
template <class T>
Var<T> values(Tape<T>& tape, std::span<const float> numbers, const Shape4& shape) {
  const Var<T> y = tape.make(shape, {});
  std::ranges::transform(numbers, y.value.data, [](float x) { return T(x); });
  return y;
}

/// [1, tokens, 1, width]: sines and cosines of positions (Vaswani et al. 2017).
template <class T>
Var<T> sine_positions(Tape<T>& tape, Index tokens, Index width) {
  const Var<T> y = tape.make({1, tokens, 1, width}, {});
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < width; ++i) {
      const double angle = double(t) * std::pow(1e4, -double(i - i % 2) / double(width));
      y.value(0, t, 0, i) = T(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return y;
}

template <class T>
Var<T> last_token(Var<T> x) {
  return Tape<T>::part(x, slice(x.value, 1, x.dim(1) - 1, 1));
}

template <class T>
bool all_finite(std::span<const T> numbers) {
  return std::ranges::all_of(numbers, [](T number) { return std::isfinite(number); });
}

/// With the gradient of what a pass contributes to the mean over all labels of a batch.
template <class T>
void seed_loss(Tape<T>& tape, Var<T> loss, Index count, const Pass& pass) {
  if (loss.wanted()) tape.seed(loss).data[0] = pass.count > 0 ? T(double(count) / pass.count) : T(1);
}

/// A copy that the backward pass still finds.
template <class T, class U>
std::span<const U> kept(Tape<T>& tape, std::span<const U> numbers) {
  U* copy = tape.template keep<U>(Index(numbers.size()));
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
          .offsets = in.offsets};
}

template <class T>
Model<T>::Model(const ModelConfig& config, Parameters<T>& parameters) : config_(config) {
  check(config);
  const Index D = config.width;
  if (config.vocabulary > 0)
    embedding_.emplace(parameters, "embedding", config.vocabulary, D, graph::normal(config.deviation));
  else
    input_.emplace(parameters, "input", config.features, D,
                   typename Linear<T>::Options{.bias = true, .weight = graph::normal(1 / std::sqrt(double(config.features)))});
  if (config.positions) positions_ = matrix_parameter(parameters, "positions.weight", config.length, config, Reader::any);
  // Blocks hold handles and are not to move once made, for closures point to them.
  blocks_.reserve(config.layers.size());
  for (Index layer = 0; layer < Index(config.layers.size()); ++layer)
    blocks_.emplace_back(layer_graph(config, layer), parameters, "layers." + std::to_string(layer),
                         BlockOptions{.norm = {.kind = config.norm}, .mlp = mlp_options(config)});
  link_blocks();
  norm_.emplace(parameters, "norm", D, NormOptions{.kind = config.norm});
  for (Index i = 0; config.kind == ModelKind::autoencoder && i < kDecoderLayers; ++i) {
    const std::string name = "decoder." + std::to_string(i);
    const typename Linear<T>::Options options{.bias = true, .weight = graph::normal(1 / std::sqrt(double(D)))};
    decoder_.push_back({{parameters, name + ".norm", D, {.kind = config.norm}}, {parameters, name + ".linear", D, D, options}});
  }
  if (labels_tokens(config.kind) && config.tied) {
    head_ = embedding_->weight();
    return;
  }
  head_ = matrix_parameter(parameters, "head.weight", labels_of(config), config, Reader::products);
  if (labels_tokens(config.kind)) return;
  head_bias_ =
      parameters.add({.name = "head.bias", .shape = {labels_of(config)}, .init = graph::constant(0), .decay = Decay::no}).var;
}

template <class T>
std::vector<const graph::Graph*> Model<T>::graphs() const {
  std::vector<const graph::Graph*> all;
  for (const Block<T>& block : blocks_) all.push_back(&block.mixer().graph());
  return all;
}

template <class T>
void Model<T>::link_blocks() {
  const std::vector<const graph::Graph*> all = graphs();
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
  if (input_) expect_size("numbers as inputs", in.inputs.size(), tokens * config_.features);
  if (!in.lengths.empty()) expect_size("lengths", in.lengths.size(), in.B);
  for (const Index length : in.lengths)
    require(length > 0 && length <= in.T, "model", "expected lengths from 1 to ", in.T, ", got ", length);
  if (!in.offsets.empty())
    require(config_.kind == ModelKind::language, "model", "expected a language model for packed sequences, got one of kind ",
            name_of(config_.kind));
  const auto parts = sequences("model", in.B, in.T, in.offsets);
  if (states != nullptr)
    require(states->size() == blocks_.size() && states->front().batch() == Index(parts.size()), "model", "expected states of ",
            blocks_.size(), " layers and ", parts.size(), " sequences, got ", states->size(), " and ",
            states->empty() ? 0 : states->front().batch());
  for (std::size_t i = 0; positions_.present() && i < parts.size(); ++i) {
    const Index end = parts[i].length + (states == nullptr ? 0 : Index((*states)[0].positions()[i]));
    require(end <= config_.length, "model", "expected at most ", config_.length, " tokens, got ", end);
  }
}

template <class T>
void Model<T>::check_targets(const ModelInput& in) const {
  if (config_.kind == ModelKind::regression)
    expect_size("numbers as targets", in.targets.size(), in.B * config_.outputs);
  else
    expect_size("labels", in.labels.size(), labels_tokens(config_.kind) ? in.B * in.T : in.B);
}

template <class T>
Var<T> Model<T>::front(Tape<T>& tape, const ModelInput& in, const Along& along) const {
  const Pass& pass = along.pass;
  Var<T> x = embedding_ ? (*embedding_)(tape, contiguous(in.tokens.data(), {in.B, in.T}))
                        : (*input_)(tape, values(tape, in.inputs, {in.B, in.T, 1, config_.features}));
  if (positions_.present()) {
    Sequences places{.offsets = along.offsets};
    if (along.states != nullptr) places.positions = (*along.states)[0].positions();
    x = ops::add(tape, x, ops::position_table(tape, positions_, in.B, in.T, places));
  }
  const double rate = pass.dropout ? config_.dropout : 0;
  return ops::dropout(tape, x,
                      {.rate = rate,
                       .seed = pass.seed,
                       .stream = pass.step * std::uint64_t(streams()),
                       .first = pass.first * in.T * config_.width});
}

template <class T>
Var<T> Model<T>::run_block(Tape<T>& tape, const Flow& flow, std::size_t layer, const Along& along) const {
  const Pass& pass = along.pass;
  StateValues<T>* state = along.states != nullptr ? &(*along.states)[layer] : nullptr;
  const DropoutOptions dropout{.rate = pass.dropout ? config_.dropout : 0,
                               .seed = pass.seed,
                               .stream = pass.step * std::uint64_t(streams()) + 1 + 2 * layer,
                               .first = pass.first * flow.in[0].dim(1) * config_.width};
  const auto forward = [block = &blocks_[layer], window = pass.window, hidden = pass.hidden, offsets = along.offsets,
                        lengths = along.lengths, state, dropout](Tape<T>& on, std::span<const Var<T>> in, std::span<Var<T>> out) {
    out[0] = block->forward(on, in[0], dropout,
                            {.taken = in.subspan(1),
                             .given = out.subspan(1),
                             .offsets = offsets,
                             .lengths = lengths,
                             .window = window,
                             .hidden = hidden,
                             .state = state});
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
Var<T> Model<T>::pooled(Tape<T>& tape, Var<T> x, const ModelInput& in) const {
  if (in.lengths.empty()) return ops::mean(tape, x);
  const Var<T> weight = tape.make({in.B, in.T, 1, 1}, {});
  for (Index b = 0; b < in.B; ++b)
    for (Index t = 0; t < in.T; ++t) {
      const Index length = in.lengths[std::size_t(b)];
      weight.value(b, t, 0, 0) = t < length ? T(in.T) / T(length) : T(0);
    }
  return ops::mean(tape, ops::multiply(tape, x, weight));
}

template <class T>
Var<T> Model<T>::decoded(Tape<T>& tape, Var<T> x) const {
  Var<T> y = ops::add(tape, last_token(x), sine_positions(tape, x.dim(1), config_.width));
  for (const Decoder& layer : decoder_) y = ops::unary(tape, Unary::gelu, layer.linear(tape, layer.norm(tape, y)));
  return y;
}

template <class T>
ModelResult Model<T>::read_labels(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const {
  const std::span predicted(tape.template keep<std::int64_t>(Index(in.labels.size())), in.labels.size());
  std::ranges::fill(predicted, -1);
  LossResult result;
  const Var<T> loss = ops::linear_cross_entropy<T>(tape,
                                                   {.x = x,
                                                    .weight = head_,
                                                    .bias = head_bias_,
                                                    .labels = contiguous(in.labels.data(), {x.dim(0), x.dim(1)}),
                                                    .predicted = predicted.data()},
                                                   config_.logit_cap, &result);
  seed_loss(tape, loss, result.count, pass);
  return {.loss = result.mean, .count = result.count, .correct = result.correct, .predicted = predicted};
}

template <class T>
ModelResult Model<T>::read_targets(Tape<T>& tape, Var<T> x, const ModelInput& in, const Pass& pass) const {
  const Shape4 shape{in.B, 1, 1, config_.outputs};
  const Var<T> y = ops::linear(tape, x, head_, head_bias_);
  const Var<T> loss = ops::mean_squared_error(tape, y, values(tape, in.targets, shape));
  seed_loss(tape, loss, in.B, pass);
  const std::span outputs(tape.template keep<float>(y.value.size()), in.targets.size());
  std::transform(y.value.data, y.value.data + y.value.size(), outputs.begin(), [](T number) { return float(number); });
  return {.loss = double(loss.value.data[0]), .count = in.B, .outputs = outputs};
}

template <class T>
ModelResult Model<T>::loss(Tape<T>& tape, const ModelInput& in, const Pass& pass, States* states) const {
  check_input(in, states);
  check_targets(in);
  const Along along{pass, kept(tape, in.offsets), kept(tape, in.lengths), states};
  const Var<T> x = blocks(tape, front(tape, in, along), along);
  switch (config_.kind) {
    case ModelKind::language: return read_labels(tape, (*norm_)(tape, x), in, pass);
    case ModelKind::autoencoder: return read_labels(tape, decoded(tape, (*norm_)(tape, x)), in, pass);
    case ModelKind::regression: return read_targets(tape, (*norm_)(tape, last_token(x)), in, pass);
    default: return read_labels(tape, pooled(tape, (*norm_)(tape, x), in), in, pass);
  }
}

template <class T>
Var<T> Model<T>::projected(Tape<T>& tape, Var<T> x) const {
  const Var<T> y = ops::linear(tape, x, head_, head_bias_);
  return config_.logit_cap > 0 ? ops::unary(tape, Unary::softcap, y, {.a = config_.logit_cap}) : y;
}

template <class T>
ModelOutput<T> Model<T>::logits(Tape<T>& tape, const ModelInput& in, const Pass& pass) const {
  check_input(in);
  const Along along{pass, kept(tape, in.offsets), kept(tape, in.lengths)};
  const Var<T> hidden = (*norm_)(tape, blocks(tape, front(tape, in, along), along));
  switch (config_.kind) {
    case ModelKind::language: return {hidden, projected(tape, hidden)};
    case ModelKind::autoencoder: return {hidden, projected(tape, decoded(tape, hidden))};
    case ModelKind::regression: return {hidden, ops::linear(tape, last_token(hidden), head_, head_bias_)};
    default: return {hidden, projected(tape, pooled(tape, hidden, in))};
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
    const Along along{pass, in.offsets, in.lengths};
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
  const bool front = name.starts_with("embedding.") || name.starts_with("input.") || name.starts_with("positions.");
  return front ? name_of_front() : "the output";
}

template <class T>
void Model<T>::visit_blocks(Tape<T>& tape, const ModelInput& in, const Visit& visit) const {
  check_input(in);
  const typename Tape<T>::Scope scope(tape);
  tape.without_recording([&] {
    const Pass plain;
    const Along along{plain, in.offsets, in.lengths};
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
