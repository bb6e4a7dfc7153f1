#pragma once
// One pass over the nodes of a mixer. Used by the mixer only.
#include <memory>

#include "isomer/autograd/law.h"
#include "isomer/autograd/tokens.h"
#include "isomer/nn/mixer.h"

namespace isomer {

template <class T>
class MixerRun {
 public:
  MixerRun(const Mixer<T>& mixer, Tape<T>& tape, Var<T> x, MixerState<T>* state, const MixerPass<T>& pass)
      : mixer_(mixer),
        tape_(tape),
        x_(x),
        state_(state),
        pass_(pass),
        sequences_{.offsets = pass.offsets, .positions = positions()},
        values_(vars(mixer.graph_.nodes.size())) {}
  void operator()();
  /// Of all nodes. They live as long as the tape's.
  [[nodiscard]] std::span<Var<T>> values() const { return values_; }

 private:
  /// Absent ones, which live as long as the tape's values.
  [[nodiscard]] std::span<Var<T>> vars(std::size_t count) {
    Var<T>* all = tape_.template keep<Var<T>>(Index(count));
    std::uninitialized_fill_n(all, count, Var<T>());
    return {all, count};
  }
  [[nodiscard]] Var<T> in(std::size_t i) const { return values_[std::size_t(node_->inputs[i])]; }
  [[nodiscard]] const NodeWeights<T>& weights() const { return mixer_.weights_[at_]; }
  /// Of each sequence; the state moves on before the backward pass.
  [[nodiscard]] std::span<const std::int64_t> positions() {
    if (pass_.state == nullptr) return state_ != nullptr ? state_->positions() : std::span<const std::int64_t>();
    std::int64_t* kept = tape_.template keep<std::int64_t>(pass_.state->batch());
    std::ranges::copy(pass_.state->positions(), kept);
    return {kept, std::size_t(pass_.state->batch())};
  }
  /// What an op along the tokens goes on from: the node's only array of the state, if there is one.
  [[nodiscard]] Along<T> along() {
    if (pass_.state != nullptr) return {sequences_, &pass_.state->node(at_).vars[0]};
    if (state_ == nullptr) return {sequences_};
    held_ = state_var(kept<3>());
    return {sequences_, &held_};
  }
  [[nodiscard]] ops::AlongSum<T> along_sum() {
    if (pass_.state != nullptr) {
      auto& node = pass_.state->node(at_);
      return {{sequences_, &node.vars[0]}, state_view(contiguous(node.sum.data(), node.vars[0].shape()))};
    }
    return {{sequences_}, state_ == nullptr ? View<double, 3>() : state_->node(int(at_)).sums[0].template view<3>()};
  }
  /// The node's i-th array of the state; absent when there is none.
  template <int R>
  [[nodiscard]] View<T, R> kept(std::size_t i = 0) const {
    return state_ == nullptr ? View<T, R>() : state_->node(int(at_)).arrays[i].template view<R>();
  }
  [[nodiscard]] Index tokens() const { return x_.dim(1); }

  void product(const typename Mixer<T>::Product& product);
  void run(const NodeGroup& group);
  Var<T> run(const graph::Input&) { return x_; }
  Var<T> run(const graph::Linear&);
  Var<T> run(const graph::HeadLinear&);
  Var<T> run(const graph::Parameter&) { return weights().weight; }
  Var<T> run(const graph::Convolution&);
  Var<T> run(const graph::Shift&);
  Var<T> run(const graph::Map&);
  Var<T> run(const graph::Combine&);
  Var<T> run(const graph::Gate&);
  Var<T> run(const graph::Heads&);
  Var<T> run(const graph::Repeat&);
  Var<T> run(const graph::Gather&);
  Var<T> run(const graph::Normalise&);
  Var<T> run(const graph::Rotary&);
  Var<T> run(const graph::Rotate&);
  Var<T> run(const graph::RunningSum&);
  Var<T> run(const graph::Mean&);
  Var<T> run(const graph::Concat&);
  Var<T> run(const graph::Slice&);
  Var<T> run(const graph::Softmax&);
  Var<T> run(const graph::SquareSum&);
  Var<T> run(const graph::Largest&);
  Var<T> run(const graph::TaylorFeatures&);
  Var<T> run(const graph::Position&);
  Var<T> run(const graph::PositionTable&);
  Var<T> run(const graph::Psi&);
  Var<T> run(const graph::LocalSum&);
  Var<T> run(const graph::LocalImageSum&);
  Var<T> run(const graph::Detach&);
  Var<T> run(const graph::ShareOfHeads&);
  Var<T> run(const graph::FromFirst&) { return values_[at_]; }

  // Laws (mixer_laws.cc).
  Var<T> run(const graph::Law&);
  /// Keys and values of the tokens that all look at.
  void keep_seen(const graph::Law& work, ops::LawVars<T>& vars);
  /// Every query alone with the keys that it sees.
  Var<T> law_on_visible(const graph::Law& work, const ops::LawVars<T>& vars);
  /// Each sequence on a stream of its own.
  Var<T> law_on_streams(const graph::Law& work, const ops::LawVars<T>& vars, std::span<Copied<LawStream>> streams);
  /// With states as values of the tape.
  Var<T> law_on_values(ops::LawVars<T>& vars);

  const Mixer<T>& mixer_;
  Tape<T>& tape_;
  Var<T> x_;
  MixerState<T>* state_;
  const MixerPass<T>& pass_;
  Sequences sequences_;
  Var<T> held_;  // the state of a node that runs
  std::span<Var<T>> values_;
  const graph::Node* node_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace isomer
