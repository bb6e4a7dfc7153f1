// Streaming: the states of all layers go on, a stretch of tokens at a time.
#include <algorithm>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/views.h"
#include "isomer/base/error.h"
#include "isomer/models/model.h"

namespace isomer {

namespace {
// Tokens of all sequences that run at a time: as many as keep products busy, so that memory does not grow with the prompt.
constexpr Index kStretch = 1024;

void require_language(ModelKind kind) {
  require(kind == ModelKind::language, "model", "expected a language model to stream, got one of kind ", name_of(kind));
}
}  // namespace

template <class T>
ModelState<T> Model<T>::start(Index B) const {
  require_language(config_.kind);
  return ModelState<T>(graphs(), B);
}

template <class T>
ModelState<T> Model<T>::load_state(const std::string& path) const {
  require_language(config_.kind);
  return ModelState<T>::load(path, graphs());
}

template <class T>
void Model<T>::check_stream(Index tokens, ModelState<T>& state) const {
  require_language(config_.kind);
  const Index B = state.batch(), n = tokens / B;
  require(n > 0 && tokens == B * n, "model", "expected as many tokens for each of ", B, " sequences, got ", tokens);
  require(state.layers().size() == blocks_.size(), "model", "expected a state of ", blocks_.size(), " layers, got ",
          state.layers().size());
  require(!positions_.present() || state.position() + n <= config_.length, "model", "expected at most ", config_.length,
          " tokens (learned positions), got ", state.position() + n);
}

template <class T>
Var<T> Model<T>::streamed(Tape<T>& tape, View<const std::int64_t, 2> tokens, ModelState<T>& state) {
  Var<T> x = (*embedding_)(tape, tokens);
  if (positions_.present()) x = add(tape, x, position_table(positions_, state.position(), tokens.shape[1]));
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer)
    x = blocks_[layer].prefill(tape, x, state.layers()[layer], flow_into(layer, x).carried());
  return x;
}

template <class T>
ModelOutput<T> Model<T>::logits(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state) {
  check_stream(Index(tokens.size()), state);
  const Index B = state.batch();
  return tape.without_recording([&]() -> ModelOutput<T> {
    const Var<T> hidden = (*norm_)(tape, streamed(tape, contiguous(tokens.data(), {B, Index(tokens.size()) / B}), state));
    return {hidden, projected(tape, hidden)};
  });
}

template <class T>
View<const T, 2> Model<T>::prefill(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state) {
  check_stream(Index(tokens.size()), state);
  const Index B = state.batch(), n = Index(tokens.size()) / B, V = head_.dim(2);
  const View<const std::int64_t, 2> all = contiguous(tokens.data(), {B, n});
  logits_.resize(std::size_t(B * V));
  const Index stretch = std::max<Index>(1, kStretch / B);
  for (Index begin = 0; begin < n; begin += stretch) {
    const typename Tape<T>::Aside aside(tape);
    tape.without_recording([&] {
      const Index size = std::min(stretch, n - begin);
      const Var<T> x = streamed(tape, slice(all, 1, begin, size), state);
      if (begin + size < n) return;
      const Var<T> last = Tape<T>::part(x, slice(x.value, 1, size - 1, 1));
      std::copy_n(projected(tape, (*norm_)(tape, last)).value.data, B * V, logits_.data());
    });
  }
  return contiguous<const T>(logits_.data(), {B, V});
}

template <class T>
Index Model<T>::step_bytes(const Parameters<T>& parameters) const {
  Index bytes = 0;
  for (const Parameter<T>& p : parameters.all()) {
    const bool table = (p.name() == "embedding.weight" && !config_.tied) || p.name() == "positions.weight" ||
                       p.name().ends_with(".mixer.position.weight");
    bytes += table ? p.bytes() / p.spec.shape[0] : p.bytes();
  }
  return bytes;
}

template <class T>
View<const T, 2> Model<T>::step(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state) {
  require(Index(tokens.size()) == state.batch(), "model", "expected one token for each of ", state.batch(), " sequences, got ",
          tokens.size());
  return prefill(tape, tokens, state);
}

template ModelState<float> Model<float>::start(Index) const;
template ModelState<double> Model<double>::start(Index) const;
template ModelState<float> Model<float>::load_state(const std::string&) const;
template ModelState<double> Model<double>::load_state(const std::string&) const;
template Index Model<float>::step_bytes(const Parameters<float>&) const;
template Index Model<double>::step_bytes(const Parameters<double>&) const;
template void Model<float>::check_stream(Index, ModelState<float>&) const;
template void Model<double>::check_stream(Index, ModelState<double>&) const;
template Var<float> Model<float>::streamed(Tape<float>&, View<const std::int64_t, 2>, ModelState<float>&);
template Var<double> Model<double>::streamed(Tape<double>&, View<const std::int64_t, 2>, ModelState<double>&);
template ModelOutput<float> Model<float>::logits(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&);
template ModelOutput<double> Model<double>::logits(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&);
template View<const float, 2> Model<float>::prefill(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&);
template View<const double, 2> Model<double>::prefill(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&);
template View<const float, 2> Model<float>::step(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&);
template View<const double, 2> Model<double>::step(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&);

}  // namespace isomer
