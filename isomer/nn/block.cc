#include "isomer/nn/block.h"

#include "isomer/autograd/elementwise.h"

namespace isomer {

namespace {
/// x + dropout(branch).
template <class T>
Var<T> residual(Tape<T>& tape, Var<T> x, Var<T> branch, DropoutOptions options, std::uint64_t half) {
  options.stream += half;
  return ops::add(tape, x, ops::dropout(tape, branch, options));
}
}  // namespace

template <class T>
Block<T>::Block(graph::Graph mixer, Parameters<T>& parameters, const std::string& name, const BlockOptions& options)
    : norm1_(parameters, name + ".norm1", mixer.width, options.norm), mixer_(std::move(mixer), parameters, name + ".mixer") {
  if (options.mlp.kind == MlpKind::none) return;
  norm2_.emplace(parameters, name + ".norm2", mixer_.graph().width, options.norm);
  mlp_.emplace(parameters, name + ".mlp", mixer_.graph().width, options.mlp);
}

template <class T>
Var<T> Block<T>::with_mlp(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout) const {
  return mlp_ ? residual(tape, x, (*mlp_)(tape, (*norm2_)(tape, x)), dropout, 1) : x;
}

template <class T>
Var<T> Block<T>::forward(Tape<T>& tape, Var<T> x, const DropoutOptions& dropout, const MixerPass<T>& pass) const {
  return with_mlp(tape, residual(tape, x, mixer_.forward(tape, norm1_(tape, x), pass), dropout, 0), dropout);
}

template <class T>
Var<T> Block<T>::prefill(Tape<T>& tape, Var<T> x, MixerState<T>& state, const MixerPass<T>& pass) const {
  return tape.without_recording([&] {
    const DropoutOptions none{.rate = 0};
    return with_mlp(tape, residual(tape, x, mixer_.prefill(tape, norm1_(tape, x), state, pass), none, 0), none);
  });
}

template class Block<float>;
template class Block<double>;

}  // namespace isomer
