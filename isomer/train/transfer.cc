#include "isomer/train/transfer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "isomer/autograd/loss.h"
#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/laws/attention/attention_law.h"
#include "isomer/laws/scalar_decay/scalar_decay_law.h"

namespace isomer {

namespace {
/// Queries and keys of a mixer's only law, as it gets them.
struct Read {
  int q = -1, k = -1;
  const graph::Law* law = nullptr;

  explicit Read(const graph::Graph& graph) {
    for (const graph::Node& node : graph.nodes) {
      const auto* here = std::get_if<graph::Law>(&node.work);
      if (here == nullptr) continue;
      if (law != nullptr || here->find("q") < 0 || here->find("k") < 0) {
        law = nullptr;
        return;
      }
      law = here;
      q = node.inputs[std::size_t(here->find("q"))];
      k = node.inputs[std::size_t(here->find("k"))];
    }
  }
  /// The law's options, if it is of this kind and reads q, k and v alone.
  template <class Bound>
  [[nodiscard]] auto plain() const {
    const auto* own = law != nullptr && law->roles.size() == 3 ? dynamic_cast<const Bound*>(law->law.get()) : nullptr;
    return own != nullptr ? &own->options() : nullptr;
  }
};

/// A new mixer that learns from an old one.
class Pupil {
 public:
  Pupil(const Mixer<float>& teacher, const graph::Graph& graph, Index layer)
      : mixer_(graph, parameters_, "layers." + std::to_string(layer) + ".mixer"),
        theirs_(teacher.graph()),
        ours_(mixer_.graph()),
        given_(mixer_.graph().given.size()),
        report_{.layer = layer} {
    const auto* softmax = theirs_.plain<BoundAttention>();
    const auto* linear = ours_.plain<BoundScalarDecay>();
    if (softmax == nullptr || linear == nullptr) return;
    const bool normalised = softmax->kernel == AttentionOptions::Kernel::exp &&
                            softmax->normaliser == AttentionOptions::Normaliser::sum &&
                            linear->normaliser == ScalarDecayOptions::Normaliser::sum;
    const bool causal = softmax->direction == AttentionOptions::Direction::causal;
    report_.weights = normalised && causal == (linear->direction == ScalarDecayOptions::Direction::causal);
    if (report_.weights) options_ = *softmax;
  }

  /// Takes the numbers of the model; only `fresh` parameters learn.
  void start(const Parameters<float>& from, const std::set<std::string>& fresh, double lr) {
    for (const Parameter<float>& p : parameters_.all()) std::ranges::copy(from.find(p.name()).values(), p.values().begin());
    parameters_.freeze([&](const std::string& name) { return !fresh.contains(name); });
    require(parameters_.trained_size() > 0, "transfer", "the new layer ", report_.layer, " (", mixer_.graph().preset,
            ") has nothing to learn: all of its parameters are kept or fixed");
    // As LoLCATs (Zhang et al. 2024): no decay, and a large rate for maps that start near the identity.
    optimiser_.emplace(parameters_, OptimiserOptions{.weight_decay = 0});
    lr_ = lr;
  }
  void give(Parameters<float>& to) const {
    for (const Parameter<float>& p : parameters_.all()) std::ranges::copy(p.values(), to.find(p.name()).values().begin());
  }

  /// Another pupil's values are what this one takes: it looks first, and they stay as they are.
  void take(Pupil& other, std::size_t value) { taken_.push_back(&other.given_[value]); }

  /// The loss for an input of the old mixer and what its nodes made of it. On a tape that records, learns from it.
  /// `seen`: the first tokens, which all look at; 0: all of them are.
  double look(Tape<float>& tape, Var<float> x, std::span<const Var<float>> theirs, Index seen, double factor) {
    const std::span<const Var<float>> own = run(tape, x, seen);
    double scale = 1;
    Var<float> loss;
    if (report_.weights) {
      const Var<float> k = own[std::size_t(ours_.k)], old_k = theirs[std::size_t(theirs_.k)];
      const Index keys = seen > 0 ? seen : k.dim(1);
      loss = ops::attention_divergence<float>(tape,
                                              {.features_q = own[std::size_t(ours_.q)],
                                               .features_k = Tape<float>::part(k, slice(k.value, 1, 0, keys)),
                                               .q = theirs[std::size_t(theirs_.q)].value,
                                               .k = slice(old_k.value, 1, 0, keys)},
                                              options_);
    } else {
      const Var<float> y = theirs.back();
      double squares = 0;
      for (Index i = 0; i < y.value.size(); ++i) squares += double(y.value.data[i]) * double(y.value.data[i]);
      scale = double(y.value.size()) / std::max(squares, 1e-30);
      loss = ops::mean_squared_error(tape, own.back(), tape.input(y.value));
    }
    const double value = scale * double(loss.value.data[0]);
    if (tape.recording()) learn(tape, loss, scale, factor, value);
    tape.clear();
    return value;
  }

  TransferReport& report() { return report_; }

 private:
  /// A value that goes from layer to layer beside x.
  struct Value {
    Shape4 shape = {};
    std::vector<float> numbers = {};
  };
  std::span<const Var<float>> run(Tape<float>& tape, Var<float> x, Index seen) {
    std::vector<Var<float>> taken, given(given_.size());
    for (Value* from : taken_) taken.push_back(tape.input(contiguous(from->numbers.data(), from->shape)));
    const std::span<const Var<float>> values =
        mixer_.values(tape, tape.input(x.value), {.taken = taken, .given = given, .seen = seen});
    for (std::size_t i = 0; i < given.size(); ++i) {
      given_[i] = {given[i].shape(), std::vector<float>(std::size_t(given[i].value.size()))};
      copy<float>(given[i].value, contiguous(given_[i].numbers.data(), given_[i].shape), tape.context());
    }
    return values;
  }
  void learn(Tape<float>& tape, Var<float> loss, double scale, double factor, double value) {
    tape.seed(loss).data[0] = float(scale);
    tape.backward();
    const double norm = std::isfinite(value) ? optimiser_->step(lr_ * factor, tape.context()) : value;
    parameters_.zero_gradients();
    if (!std::isfinite(norm))
      throw NotFinite("transfer: the loss or gradient of layer " + std::to_string(report_.layer) + " is not finite in step " +
                      std::to_string(optimiser_->steps() + 1));
  }

  Parameters<float> parameters_;
  Mixer<float> mixer_;
  Read theirs_, ours_;
  std::vector<Value> given_;
  std::vector<Value*> taken_;  // of other pupils
  AttentionOptions options_;
  std::optional<Optimiser<float>> optimiser_;
  double lr_ = 0;
  TransferReport report_;
};

/// All new mixers, and the old model that shows them what to do.
class Lesson {
 public:
  Lesson(Session& from, Session& to, std::span<const ConvertedParameter> fates, double lr, Context& context)
      : from_(from), watching_(context, Record::no), looking_(context, Record::no), learning_(context) {
    std::set<Index> layers;
    std::set<std::string> fresh;
    for (const ConvertedParameter& p : fates) {
      // Layers learn one by one: what they share stays as it starts.
      if (p.layer < 0) continue;
      layers.insert(p.layer);
      if (p.fate == ConvertedParameter::Fate::fresh) fresh.insert(p.name);
    }
    for (const Index layer : layers) {
      auto pupil = std::make_unique<Pupil>(from.model().block(layer).mixer(), layer_graph(to.config(), layer), layer);
      pupil->start(to.parameters(), fresh, lr);
      pupils_.push_back(std::move(pupil));
    }
    link(to.config());
  }

  /// One batch through the old model: every pupil looks at its layer. Returns the losses.
  const std::vector<double>& look(Split split, Index first, bool learn, double factor) {
    from_.task().fill(split, std::uint64_t(first), from_.recipe().train.batch, batch_);
    losses_.clear();
    const Index seen = Index(batch_.known.size()) / batch_.B;
    from_.model().visit_blocks(watching_, input_of(batch_), [&](Index layer, Var<float> x, auto taken) {
      if (losses_.size() == pupils_.size() || pupils_[losses_.size()]->report().layer != layer) return;
      const Block<float>& block = from_.model().block(layer);
      const Var<float> x_in = block.mixer_input(watching_, x);
      const auto values = block.mixer().values(watching_, x_in, {.taken = taken, .seen = seen});
      losses_.push_back(pupils_[losses_.size()]->look(learn ? learning_ : looking_, x_in, values, seen, factor));
    });
    watching_.clear();
    return losses_;
  }

  [[nodiscard]] std::vector<std::unique_ptr<Pupil>>& pupils() { return pupils_; }

 private:
  /// Gives every pupil what it takes from earlier ones.
  void link(const ModelConfig& config) {
    std::vector<graph::Graph> graphs;
    for (Index layer = 0; layer < Index(config.layers.size()); ++layer) graphs.push_back(layer_graph(config, layer));
    std::vector<const graph::Graph*> all;
    all.reserve(graphs.size());
    for (const graph::Graph& graph : graphs) all.push_back(&graph);
    for (const auto& pupil : pupils_)
      for (const Link& link : links_of(all, std::size_t(pupil->report().layer))) {
        const auto from = std::ranges::find(pupils_, Index(link.layer), [](const auto& other) { return other->report().layer; });
        require(from != pupils_.end(), "transfer", "layer ", pupil->report().layer, " (", all[link.layer]->preset,
                ") takes values of layer ", link.layer, ", which stays: expected both among the converted ones");
        pupil->take(**from, link.value);
      }
  }

  Session& from_;
  Tape<float> watching_, looking_, learning_;
  std::vector<std::unique_ptr<Pupil>> pupils_;  // by layer
  std::vector<double> losses_;
  Batch batch_;
};
}  // namespace

bool can_transfer(Session& to, std::span<const ConvertedParameter> fates) {
  std::set<Index> converted, learning;
  for (const ConvertedParameter& p : fates) {
    if (p.layer < 0) continue;
    converted.insert(p.layer);
    if (p.fate == ConvertedParameter::Fate::fresh && to.parameters().find(p.name).trained()) learning.insert(p.layer);
  }
  return converted == learning;
}

std::vector<TransferReport> transfer(Session& from, Session& to, std::span<const ConvertedParameter> fates,
                                     const TransferOptions& options, Context& context) {
  require(options.steps > 0, "transfer", "expected at least one step, got ", options.steps);
  Lesson all(from, to, fates, options.lr, context);
  const Schedule schedule{.kind = Schedule::Kind::cosine, .steps = options.steps, .warmup = 0, .final_fraction = 0.1};
  const auto note = [&](double TransferReport::*when) {
    const std::vector<double> losses = all.look(Split::test, 0, false, 0);
    for (std::size_t i = 0; i < losses.size(); ++i) all.pupils()[i]->report().*when = losses[i];
  };
  note(&TransferReport::before);
  for (Index step = 0; step < options.steps; ++step) {
    double sum = 0;
    for (const double loss : all.look(Split::train, step * from.recipe().train.batch, true, factor(schedule, step))) sum += loss;
    if (options.progress) options.progress(step + 1, sum / double(all.pupils().size()));
  }
  note(&TransferReport::after);
  std::vector<TransferReport> reports;
  for (const auto& pupil : all.pupils()) {
    pupil->give(to.parameters());
    reports.push_back(pupil->report());
  }
  return reports;
}

}  // namespace isomer
