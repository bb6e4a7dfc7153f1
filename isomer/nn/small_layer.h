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

  explicit SmallLayer(graph::Graph graph) : mixer_(std::move(graph), parameters_, "mixer"), tokens_(length(mixer_.graph())) {
    initialise(parameters_, 1);
    Rng rng(2);
    for (const Parameter<T>& p : parameters_.all())
      if (p.trained())
        for (T& value : p.values()) value += T(0.2 * rng.normal());
    x_.resize(std::size_t(kBatch * tokens_ * width()));
    for (T& value : x_) value = T(rng.normal());
  }

  [[nodiscard]] Parameters<T>& parameters() { return parameters_; }
  [[nodiscard]] Mixer<T>& mixer() { return mixer_; }
  [[nodiscard]] Index tokens() const { return tokens_; }
  [[nodiscard]] Index width() const { return mixer_.graph().width; }
  [[nodiscard]] std::vector<T>& x() { return x_; }
  [[nodiscard]] View<T, 4> all() { return contiguous(x_.data(), {kBatch, tokens_, 1, width()}); }
  [[nodiscard]] View<T, 4> some(Index begin, Index count) { return slice(all(), 1, begin, count); }

  /// All outputs, without a tape.
  [[nodiscard]] std::vector<T> forward(Context& context) {
    Tape<T> tape(context, Record::no);
    return numbers(mixer_.forward(tape, tape.input(all())).value);
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
};

}  // namespace isomer
