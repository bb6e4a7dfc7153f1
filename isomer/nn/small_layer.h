#pragma once
// A small mixer with parameters away from where they start, so that nothing is zero by chance, and an input. For checks and
// tests.
#include <algorithm>
#include <vector>

#include "isomer/base/rng.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"

namespace isomer {

template <class T>
class SmallLayer {
 public:
  static constexpr Index kBatch = 2;

  explicit SmallLayer(graph::Graph graph, Type storage = type_of<T>)
      : parameters_(storage), mixer_(std::move(graph), parameters_, "mixer"), tokens_(length(mixer_.graph())) {
    initialise(parameters_, 1);
    Rng rng(2);
    for (const Parameter<T>& p : parameters_.all()) {
      if (!p.trained()) continue;
      Tensor moved(type_of<T>, p.spec.shape);
      copy_numbers(p.numbers(), mutable_view_of(moved));
      for (Index i = 0; i < moved.size(); ++i) moved.data<T>()[i] += T(0.2 * rng.normal());
      copy_numbers(view_of(moved), p.numbers());
    }
    x_.resize(std::size_t(kBatch * tokens_ * width()));
    for (T& value : x_) value = T(rng.normal());
    for (const int node : graph::taken(mixer_.graph())) {
      const graph::Node& from = mixer_.graph().nodes[std::size_t(node)];
      Other& other = others_.emplace_back(Other{{kBatch, tokens_, from.heads, from.size}, {}});
      other.numbers.resize(std::size_t(size_of(other.shape)));
      for (T& value : other.numbers) value = T(rng.normal());
    }
  }

  [[nodiscard]] Parameters<T>& parameters() { return parameters_; }
  [[nodiscard]] const Mixer<T>& mixer() const { return mixer_; }
  [[nodiscard]] Index tokens() const { return tokens_; }
  [[nodiscard]] Index width() const { return mixer_.graph().width; }
  [[nodiscard]] std::vector<T>& x() { return x_; }
  [[nodiscard]] View<T, 4> all() { return contiguous(x_.data(), {kBatch, tokens_, 1, width()}); }
  [[nodiscard]] View<T, 4> some(Index begin, Index count) { return slice(all(), 1, begin, count); }

  /// What the mixer takes from another layer.
  struct Other {
    Shape4 shape;
    std::vector<T> numbers;
  };
  [[nodiscard]] std::vector<Other>& others() { return others_; }
  /// The same of some tokens, on a tape: valid until the next call.
  [[nodiscard]] MixerPass<T> carried(Tape<T>& tape, Index begin, Index count, bool wanted = false) {
    taken_.clear();
    for (Other& other : others_)
      taken_.push_back(tape.input(slice(contiguous(other.numbers.data(), other.shape), 1, begin, count), wanted));
    return {.taken = taken_};
  }
  [[nodiscard]] MixerPass<T> carried(Tape<T>& tape, bool wanted = false) { return carried(tape, 0, tokens_, wanted); }
  /// Tokens begin … begin + count − 1 on a state.
  [[nodiscard]] Var<T> prefill(Tape<T>& tape, Index begin, Index count, MixerState<T>& state) {
    const MixerPass<T> pass = carried(tape, begin, count);
    return mixer_.prefill(tape, tape.input(some(begin, count)), state, pass);
  }
  /// The laws of all tokens with their inputs.
  [[nodiscard]] std::vector<LawCall> law_calls(Tape<T>& tape) {
    const MixerPass<T> pass = carried(tape);
    return mixer_.law_calls(tape, tape.input(all()), pass);
  }

  /// All outputs, without a tape.
  [[nodiscard]] std::vector<T> forward(Context& context, Form form = Form::automatic) {
    Tape<T> tape(context, Record::no);
    MixerPass<T> pass = carried(tape);
    pass.form = form;
    return numbers(mixer_.forward(tape, tape.input(all()), pass).value);
  }

  [[nodiscard]] static std::vector<T> numbers(View<T, 4> y) {
    std::vector<T> all;
    for (Index b = 0; b < y.shape[0]; ++b)
      for (Index t = 0; t < y.shape[1]; ++t)
        for (Index d = 0; d < y.shape[3]; ++d) all.push_back(y(b, t, 0, d));
    return all;
  }

 private:
  /// An image decides how many tokens there are.
  [[nodiscard]] static Index length(const graph::Graph& graph) {
    constexpr Index kTokens = 13;
    for (const graph::Node& node : graph.nodes)
      if (const auto* image = std::get_if<graph::LocalImageSum>(&node.work)) return image->rows * image->columns;
    return kTokens;
  }

  Parameters<T> parameters_;
  Mixer<T> mixer_;
  Index tokens_;
  std::vector<T> x_;
  std::vector<Other> others_;
  std::vector<Var<T>> taken_;
};

}  // namespace isomer
