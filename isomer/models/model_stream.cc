// Streaming: the states of all layers go on, a stretch of tokens at a time.
#include <algorithm>

#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/recompute.h"
#include "isomer/autograd/tokens.h"
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
auto Model<T>::start(Index B, Tape<T>& tape) const -> States {
  require_language(config_.kind);
  States states;
  for (const graph::Graph* graph : graphs()) states.emplace_back(*graph, B, tape);
  return states;
}

template <class T>
ModelState<T> Model<T>::load_state(const std::string& path) const {
  require_language(config_.kind);
  ModelState<T> state = ModelState<T>::load(path, graphs());
  const Index V = head_.dim(2), numbers = state.has_logits() ? state.logits_size() : state.batch() * V;
  require(numbers == state.batch() * V, ("cannot load " + path + ": state").c_str(), "expected logits of ", V, " labels, got ",
          numbers / state.batch());
  return state;
}

template <class T>
void Model<T>::check_stream(std::span<const std::int64_t> tokens, std::span<const std::int64_t> offsets,
                            ModelState<T>& state) const {
  require_language(config_.kind);
  const Index B = state.batch(), count = Index(tokens.size());
  require(offsets.empty() || Index(offsets.size()) == B + 1, "model", "expected ", B + 1, " offsets for a state of ", B,
          " sequences, got ", offsets.size());
  require(!offsets.empty() || (count > 0 && count % B == 0), "model", "expected as many tokens for each of ", B,
          " sequences, got ", count);
  require(state.layers().size() == states(), "model", "expected a state of ", states(), " layers, got ", state.layers().size());
  const auto parts = sequences("model", offsets.empty() ? B : 1, offsets.empty() ? count / B : count, offsets);
  for (std::size_t i = 0; positions_.present() && i < parts.size(); ++i) {
    const Index end = Index(state.positions()[i]) + parts[i].length;
    require(end <= config_.length, "model", "expected at most ", config_.length, " tokens (learned positions), got ", end);
  }
}

template <class T>
Var<T> Model<T>::streamed(Tape<T>& tape, View<const std::int64_t, 2> tokens, std::span<const std::int64_t> offsets,
                          ModelState<T>& state) const {
  Var<T> x = (*embedding_)(tape, tokens);
  const Sequences places{.offsets = offsets, .positions = state.positions()};
  x = placed(tape, x, {}, places);
  const std::span<Flow> all = flows(tape);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const Flow& flow = flow_into(all, layer, x);
    // Nothing is recorded and so nothing computed twice: what a block makes on the way is in the memory that the one before had.
    ops::recompute<T>(tape, flow.in, flow.out, [&](Tape<T>& on, std::span<const Var<T>> in, std::span<Var<T>> out) {
      out[0] = blocks_[layer].prefill(on, in[0], state.layers()[layer],
                                      {.taken = in.subspan(1), .given = out.subspan(1), .offsets = offsets},
                                      mlp_state(state.layers(), layer));
    });
    x = flow.out[0];
  }
  return x;
}

template <class T>
ModelOutput<T> Model<T>::logits(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state,
                                std::span<const std::int64_t> offsets) const {
  check_stream(tokens, offsets, state);
  const Index B = offsets.empty() ? state.batch() : 1;
  return tape.without_recording([&]() -> ModelOutput<T> {
    const View<const std::int64_t, 2> all = contiguous(tokens.data(), {B, Index(tokens.size()) / B});
    const Var<T> hidden = normed(tape, streamed(tape, all, offsets, state));
    return {hidden, projected(tape, hidden)};
  });
}

template <class T>
View<const T, 2> Model<T>::prefill(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state,
                                   std::span<const std::int64_t> offsets) const {
  check_stream(tokens, offsets, state);
  const Index B = offsets.empty() ? state.batch() : 1, n = Index(tokens.size()) / B, V = head_.dim(2);
  const View<const std::int64_t, 2> all = contiguous(tokens.data(), {B, n});
  const View<T, 2> logits = state.logits(V);
  const Index stretch = std::max<Index>(1, kStretch / B);
  for (Index begin = 0; begin < n; begin += stretch) {
    const typename Tape<T>::Scope scope(tape);
    tape.without_recording([&] {
      const Index size = std::min(stretch, n - begin);
      // Of packed sequences, what is outside of the stretch is left out.
      const std::span<std::int64_t> own(tape.template keep<std::int64_t>(Index(offsets.size())), offsets.size());
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::clamp<std::int64_t>(offsets[i] - begin, 0, size);
      const Var<T> x = streamed(tape, slice(all, 1, begin, size), own, state);
      const auto read = [&](View<T, 4> last, T* to) {
        const Var<T> y = projected(tape, normed(tape, Tape<T>::part(x, last)));
        std::copy_n(y.value.data, y.value.size(), to);
      };
      for (std::size_t i = 0; i + 1 < own.size(); ++i)
        if (own[i] < own[i + 1] && offsets[i + 1] <= begin + size)
          read(slice(x.value, 1, own[i + 1] - 1, 1), logits.at(Index(i), 0));
      if (offsets.empty() && begin + size == n) read(slice(x.value, 1, size - 1, 1), logits.data);
    });
  }
  return logits;
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
View<const T, 2> Model<T>::step(Tape<T>& tape, std::span<const std::int64_t> tokens, ModelState<T>& state) const {
  require(Index(tokens.size()) == state.batch(), "model", "expected one token for each of ", state.batch(), " sequences, got ",
          tokens.size());
  return prefill(tape, tokens, state);
}

template ModelState<float> Model<float>::start(Index) const;
template std::vector<StateValues<float>> Model<float>::start(Index, Tape<float>&) const;
template ModelState<float> Model<float>::load_state(const std::string&) const;
template void Model<float>::check_stream(std::span<const std::int64_t>, std::span<const std::int64_t>, ModelState<float>&) const;
template Var<float> Model<float>::streamed(Tape<float>&, View<const std::int64_t, 2>, std::span<const std::int64_t>,
                                           ModelState<float>&) const;
template Index Model<float>::step_bytes(const Parameters<float>&) const;
template ModelOutput<float> Model<float>::logits(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&,
                                                 std::span<const std::int64_t>) const;
template View<const float, 2> Model<float>::prefill(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&,
                                                    std::span<const std::int64_t>) const;
template View<const float, 2> Model<float>::step(Tape<float>&, std::span<const std::int64_t>, ModelState<float>&) const;
template ModelState<double> Model<double>::start(Index) const;
template std::vector<StateValues<double>> Model<double>::start(Index, Tape<double>&) const;
template ModelState<double> Model<double>::load_state(const std::string&) const;
template void Model<double>::check_stream(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                          ModelState<double>&) const;
template Var<double> Model<double>::streamed(Tape<double>&, View<const std::int64_t, 2>, std::span<const std::int64_t>,
                                             ModelState<double>&) const;
template Index Model<double>::step_bytes(const Parameters<double>&) const;
template ModelOutput<double> Model<double>::logits(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&,
                                                   std::span<const std::int64_t>) const;
template View<const double, 2> Model<double>::prefill(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&,
                                                      std::span<const std::int64_t>) const;
template View<const double, 2> Model<double>::step(Tape<double>&, std::span<const std::int64_t>, ModelState<double>&) const;

}  // namespace isomer
