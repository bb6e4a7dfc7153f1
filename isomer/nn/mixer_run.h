#pragma once
// One pass over the nodes of a mixer. Used by the mixer only.
#include "isomer/nn/mixer.h"

namespace isomer {

template <class T>
class MixerRun {
 public:
  MixerRun(Mixer<T>& mixer, Tape<T>& tape, Var<T> x, MixerState<T>* state)
      : mixer_(mixer), tape_(tape), x_(x), state_(state), position_(state != nullptr ? state->position() : 0) {}
  /// The value of the last node.
  Var<T> operator()();

 private:
  [[nodiscard]] Var<T> in(std::size_t i) const { return mixer_.values_[std::size_t(node_->inputs[i])]; }
  [[nodiscard]] const NodeWeights<T>& weights() const { return mixer_.weights_[at_]; }
  /// The node's i-th array of the state; absent when there is none.
  template <int R>
  [[nodiscard]] View<T, R> kept(std::size_t i = 0) const {
    return state_ == nullptr ? View<T, R>() : state_->node(int(at_)).arrays[i].template view<R>();
  }
  [[nodiscard]] View<double, 3> kept_sum() const {
    return state_ == nullptr ? View<double, 3>() : state_->node(int(at_)).sums[0].template view<3>();
  }
  [[nodiscard]] Index tokens() const { return x_.dim(1); }

  void product(typename Mixer<T>::Product& product);
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
  Var<T> run(const graph::Normalise&);
  Var<T> run(const graph::Rotary&);
  Var<T> run(const graph::Rotate&);
  Var<T> run(const graph::RunningSum&);
  Var<T> run(const graph::Mean&);
  Var<T> run(const graph::Concat&);
  Var<T> run(const graph::Slice&);
  Var<T> run(const graph::Softmax&);
  Var<T> run(const graph::SquareSum&);
  Var<T> run(const graph::TaylorFeatures&);
  Var<T> run(const graph::Position&);
  Var<T> run(const graph::PositionTable&);
  Var<T> run(const graph::Psi&);
  Var<T> run(const graph::LocalSum&);
  Var<T> run(const graph::LocalImageSum&);
  Var<T> run(const graph::Detach&);
  Var<T> run(const graph::ShareOfHeads&);
  Var<T> run(const graph::FromFirst&) { return mixer_.values_[at_]; }

  // Laws (mixer_laws.cc).
  Var<T> run(const graph::Law&);

  Mixer<T>& mixer_;
  Tape<T>& tape_;
  Var<T> x_;
  MixerState<T>* state_;
  Index position_;
  const graph::Node* node_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace isomer
