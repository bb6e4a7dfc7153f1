#include "isomer/nn/block.h"

#include <array>

#include "isomer/autograd/elementwise.h"
#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/mixers/channel_mix.h"

namespace isomer {

namespace {
// In the order of NormPlace.
constexpr std::array<std::string_view, 4> kPlaces{"before", "after", "both", "branch"};
}  // namespace

std::string_view name_of(NormPlace place) { return kPlaces[std::size_t(place)]; }

NormPlace norm_place_named(std::string_view name) { return NormPlace(position_of("norm_place", name, kPlaces)); }

template <class T>
Block<T>::Branch::Branch(Parameters<T>& parameters, const std::string& block, int number, Index width,
                         const BlockOptions& options) {
  const std::string name = block + ".norm" + std::to_string(number);
  const NormPlace place = options.place;
  std::optional<NormLayer<T>>& norm = place == NormPlace::after ? after_ : place == NormPlace::branch ? out_ : before_;
  norm.emplace(parameters, name, width, options.norm);
  if (place == NormPlace::both) out_.emplace(parameters, name + "_out", width, options.norm);
  if (options.scale)
    scale_ = parameters
                 .add({.name = block + ".scale" + std::to_string(number),
                       .shape = {width},
                       .init = graph::constant(1),
                       .decay = Decay::no})
                 .var;
}

template <class T>
Var<T> Block<T>::Branch::sum(Tape<T>& tape, Var<T> x, Var<T> made, const DropoutOptions& dropout) const {
  if (out_) made = (*out_)(tape, made);
  if (scale_.present()) made = ops::multiply(tape, made, scale_);
  const Var<T> y = ops::add(tape, x, ops::dropout(tape, made, dropout));
  return after_ ? (*after_)(tape, y) : y;
}

template <class T>
Block<T>::Block(graph::Graph mixer, Parameters<T>& parameters, const std::string& name, const BlockOptions& options)
    : mixed_(parameters, name, 1, mixer.width, options), mixer_(std::move(mixer), parameters, name + ".mixer") {
  if (options.mlp.kind == MlpKind::none) return;
  const Index width = mixer_.graph().width;
  widened_.emplace(parameters, name, 2, width, options);
  if (options.mlp.kind == MlpKind::channel_mix)
    channel_mix_.emplace(channel_mix(width, hidden_size(options.mlp, width), options.mlp.rest), parameters, name + ".mlp");
  else
    mlp_.emplace(parameters, name + ".mlp", width, options.mlp);
}

template <class T>
template <class F>
Var<T> Block<T>::with_mlp(Tape<T>& tape, Var<T> x, DropoutOptions dropout, F made) const {
  if (!widened_) return x;
  ++dropout.stream;
  const Var<T> in = widened_->input(tape, x);
  return widened_->sum(tape, x, channel_mix_ ? made(in) : (*mlp_)(tape, in), dropout);
}

template <class T>
Var<T> Block<T>::forward(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout, const MixerPass<T>& pass,
                         StateValues<T>* mlp) const {
  require(!channel_mix_ || (pass.state == nullptr) == (mlp == nullptr), "block",
          "expected the states of mixer and channel-mix, got one of them");
  const Var<T> y = mixed_.sum(tape, x, mixer_.forward(tape, mixed_.input(tape, x), pass), dropout);
  return with_mlp(tape, y, dropout,
                  [&](Var<T> in) { return channel_mix_->forward(tape, in, {.offsets = pass.offsets, .state = mlp}); });
}

template <class T>
Var<T> Block<T>::prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass, MixerState<T>* mlp) const {
  require(!channel_mix_ || mlp != nullptr, "block", "expected a state for channel-mix, got none");
  return tape.without_recording([&] {
    const DropoutOptions none{.rate = 0};
    const Var<T> y = mixed_.sum(tape, x, mixer_.prefill(tape, mixed_.input(tape, x), state, pass), none);
    return with_mlp(tape, y, none, [&](Var<T> in) { return channel_mix_->prefill(tape, in, *mlp, {.offsets = pass.offsets}); });
  });
}

template class Block<float>;
template class Block<double>;

}  // namespace isomer
