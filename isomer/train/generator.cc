#include "isomer/train/generator.h"

#include <algorithm>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/models/saved_state.h"

namespace isomer {

namespace {
// As many rows as a product reads its matrix in place for (kernels/gemm), where a row is computed as if it were alone. More at
// once would be packed, which costs about what a second reading does, and round in another order.
constexpr Index kRows = 8;
// Of a state's file: how many tokens were drawn for each sequence.
constexpr const char* kDrawn = "drawn";

/// Sequences of one step. Most products have a row for each, those of all heads with one matrix a row for each head.
Index together_of(const Model<float>& model) {
  Index rows = 1;
  for (std::size_t layer = 0; layer < model.config().layers.size(); ++layer)
    for (const graph::Node& node : model.block(Index(layer)).mixer().graph().nodes)
      if (const auto* work = std::get_if<graph::HeadLinear>(&node.work); work != nullptr && work->shared)
        rows = std::max(rows, node.heads);
  return std::max<Index>(1, kRows / rows);
}

std::span<const float> row(View<const float, 2> logits, Index i) { return {logits.at(i, 0), std::size_t(logits.shape[1])}; }
}  // namespace

Generator::Generator(const LoadedModel& loaded, const SampleOptions& options, std::uint64_t seed, Context& context)
    : loaded_(loaded), options_(options), seed_(seed), tape_(context, Record::no), together_(together_of(loaded.model)) {
  const ModelKind kind = loaded.model.config().kind;
  if (kind != ModelKind::language) throw Error("expected a language model, got a " + std::string(name_of(kind)));
  (void)Sampler(options, seed);
}

std::vector<ModelState<float>> Generator::apart() const {
  std::vector<ModelState<float>> all;
  for (const ModelState<float>& group : groups_)
    for (Index i = 0; i < group.batch(); ++i) all.push_back(group.sequence(i));
  return all;
}

void Generator::together(const std::vector<ModelState<float>>& sequences, std::uint64_t drawn) {
  groups_.clear();
  samplers_.clear();
  for (const ModelState<float>& one : sequences) {
    if (groups_.empty() || groups_.back().batch() == together_)
      groups_.push_back(one);
    else
      groups_.back().append(one);
    samplers_.emplace_back(options_, seed_ + samplers_.size()).skip_to(drawn);
  }
  tokens_.resize(sequences.size());
}

void Generator::read(const std::vector<std::vector<std::int64_t>>& prompts) {
  const Model<float>& model = loaded_.model;
  require(!prompts.empty(), "prompts", "expected at least one, got none");
  std::vector<ModelState<float>> all = apart();
  if (all.empty()) all.push_back(model.start(1));
  if (all.size() == 1) all.resize(prompts.size(), all[0]);
  require(prompts.size() == all.size(), "prompts", "expected one for each of ", all.size(), " sequences, got ", prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (!prompts[i].empty()) (void)model.prefill(tape_, prompts[i], all[i]);
  together(all, samplers_.empty() ? 0 : samplers_[0].drawn());
}

std::span<const std::int64_t> Generator::next() {
  const Index V = labels_of(loaded_.model.config());
  std::size_t i = 0;
  for (ModelState<float>& group : groups_) {
    require(group.has_logits(), "prompts", "expected at least one token, got none");
    const View<const float, 2> logits = group.logits(V);
    const std::size_t first = i;
    for (Index k = 0; k < group.batch(); ++k, ++i) tokens_[i] = samplers_[i](row(logits, k));
    (void)loaded_.model.step(tape_, std::span(tokens_).subspan(first, i - first), group);
    tape_.clear();
  }
  return tokens_;
}

Index Generator::room() const {
  const ModelConfig& config = loaded_.model.config();
  if (!config.positions) return std::numeric_limits<Index>::max();
  Index longest = 0;
  for (const ModelState<float>& group : groups_) longest = std::max(longest, Index(*std::ranges::max_element(group.positions())));
  return config.length - longest;
}

Index Generator::state_bytes() const {
  Index bytes = 0;
  for (const ModelState<float>& group : groups_) bytes += group.bytes();
  return bytes;
}

void Generator::save(const std::string& path) const {
  require(!groups_.empty(), "state", "expected one that has read something, got none");
  ModelState<float> all = groups_[0];
  for (std::size_t i = 1; i < groups_.size(); ++i) all.append(groups_[i]);
  all.notes.insert_or_assign(kDrawn, std::to_string(samplers_[0].drawn()));
  save_state(path, all, loaded_);
}

void Generator::load(const std::string& path) {
  ModelState<float> state = load_state(path, loaded_);
  std::uint64_t drawn = 0;
  const std::string& text = state.notes[kDrawn];
  if (!text.empty() && !parse_number(text, drawn))
    throw Error("cannot load " + path + ": expected a number of tokens drawn, got " + text);
  groups_ = {std::move(state)};
  together(apart(), drawn);
}

}  // namespace isomer
