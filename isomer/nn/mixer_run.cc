#include "isomer/nn/mixer_run.h"

#include "isomer/autograd/conv.h"
#include "isomer/autograd/elementwise.h"
#include "isomer/autograd/fused.h"
#include "isomer/autograd/linear.h"
#include "isomer/autograd/norm.h"
#include "isomer/autograd/psi.h"
#include "isomer/autograd/rotary.h"
#include "isomer/autograd/tokens.h"
#include "isomer/autograd/views.h"

namespace isomer {

template <class T>
void MixerRun<T>::operator()() {
  for (const auto& [node, group] : mixer_.schedule_.turns) {
    if (group >= 0) {
      run(mixer_.schedule_.groups[std::size_t(group)]);
      continue;
    }
    at_ = std::size_t(node);
    node_ = &mixer_.graph_.nodes[at_];
    const int of = mixer_.product_of_[at_];
    if (of < 0)
      values_[at_] = std::visit([&](const auto& work) { return run(work); }, node_->work);
    else if (mixer_.products_[std::size_t(of)].nodes[0] == node)
      product(mixer_.products_[std::size_t(of)]);
  }
}

template <class T>
void MixerRun<T>::run(const NodeGroup& group) {
  const std::span<Var<T>> parts = vars(group.inputs.size()), results = vars(group.outputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Var<T> value = values_[std::size_t(group.inputs[i])];
    const bool whole = value.dim(2) * value.dim(3) == group.width;
    parts[i] = whole ? ops::heads(value, group.heads) : value;
  }
  for (const NodeGroup::Concat& concat : group.concats) {
    const graph::Node& node = mixer_.graph_.nodes[std::size_t(concat.node)];
    const Var<T> all = tape_.make({x_.dim(0), x_.dim(1), node.heads, node.size}, parts);
    values_[std::size_t(concat.node)] = all;
    Index begin = 0;
    for (std::size_t i = 0; i < concat.outputs.size(); ++i) {
      const Index size = mixer_.graph_.nodes[std::size_t(node.inputs[i])].size;
      const Var<T> part = Tape<T>::alias(all, slice(all.value, 3, begin, size));
      results[std::size_t(concat.outputs[i])] = ops::heads(part, group.heads);
      begin += size;
    }
  }
  ops::fused<T>(tape_, group.plan(), parts, results);
  for (const auto& [node, output] : group.results)
    values_[std::size_t(node)] = ops::heads(results[std::size_t(output)], mixer_.graph_.nodes[std::size_t(node)].heads);
}

template <class T>
void MixerRun<T>::product(const typename Mixer<T>::Product& product) {
  const Var<T> all = ops::linear(tape_, ops::heads(in(0), 1), product.weights.weight, product.weights.bias);
  if (product.nodes.size() == 1) {
    values_[std::size_t(product.nodes[0])] = all;
    return;
  }
  const std::span<Var<T>> pieces = vars(product.nodes.size());
  ops::split<T>(tape_, all, product.sizes, pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) values_[std::size_t(product.nodes[i])] = pieces[i];
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Linear&) {
  return ops::linear(tape_, ops::heads(in(0), 1), weights().weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::HeadLinear& w) {
  if (w.given) {
    const View<T, 4> v = in(1).value;
    const Var<T> rows = Tape<T>::alias(in(1), {v.data, {1, v.shape[2], 1, v.shape[3]}, {0, v.stride[2], 0, v.stride[3]}});
    return ops::head_linear(tape_, in(0), rows);
  }
  // So that a row of zeros stays one.
  constexpr double kShortest = 1e-12;
  const Var<T> weight = w.unit_rows ? ops::norm(tape_, weights().weight, {.kind = Norm::l2, .eps = kShortest}) : weights().weight;
  return ops::head_linear(tape_, in(0), weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Convolution& w) {
  return ops::conv<T>(tape_, {in(0), weights().weight, weights().bias, w.silu}, along());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Shift&) {
  return ops::shift(tape_, in(0), along());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Map& w) {
  return ops::unary(tape_, w.function, in(0), w.options);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Combine& w) {
  return ops::binary(tape_, w.function, in(0), in(1));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Gate& w) {
  return ops::gated(tape_, w.function, in(0), in(1));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Heads&) {
  return ops::heads(in(0), node_->heads);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Repeat&) {
  return ops::repeat(tape_, in(0), node_->size);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Gather& w) {
  return ops::gather<T>(tape_, in(0), w.places);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Normalise& w) {
  return ops::norm(tape_, in(0), {.kind = w.kind, .eps = w.eps}, weights().weight, weights().bias);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Rotary& w) {
  return ops::rotary(tape_, in(0), {.base = w.base, .scaling = w.scaling}, sequences_);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Rotate&) {
  return ops::rotary(tape_, in(0), in(1));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::RunningSum& w) {
  return w.angle ? ops::running_angle(tape_, in(0), along_sum()) : ops::running_sum(tape_, in(0), along_sum());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Mean& w) {
  return w.causal ? ops::running_mean(tape_, in(0), along_sum()) : ops::mean(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Concat&) {
  const std::span<Var<T>> parts = vars(node_->inputs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = in(i);
  return ops::concat<T>(tape_, parts);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Slice& w) {
  return ops::slice(in(0), w.begin, node_->size);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Softmax&) {
  return ops::softmax(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::SquareSum&) {
  return ops::square_sum(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Largest& w) {
  return ops::largest(tape_, in(0), w.over_tokens, sequences_);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::TaylorFeatures&) {
  return ops::taylor_features(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Position&) {
  return ops::position(tape_, x_.dim(0), tokens(), sequences_);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::PositionTable& w) {
  each_part("mixer", sequences_, x_.dim(0), tokens(), Placed::yes, [&](const SequencePart& part) {
    require(part.position + part.length <= w.length, "mixer", "expected at most ", w.length, " tokens (learned positions), got ",
            part.position + part.length);
  });
  return ops::position_table(tape_, weights().weight, x_.dim(0), tokens(), sequences_);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Psi& w) {
  const auto& p = weights();
  return ops::psi<T>(tape_, in(0), {p.weight, p.bias, p.output_weight, p.output_bias}, {.positive = w.positive});
}

template <class T>
Var<T> MixerRun<T>::run(const graph::LocalSum& w) {
  return ops::local_sum(tape_, in(0), in(1), w.width, along());
}

template <class T>
Var<T> MixerRun<T>::run(const graph::LocalImageSum& w) {
  return ops::local_image_sum(tape_, in(0), in(1), w.rows, w.columns);
}

template <class T>
Var<T> MixerRun<T>::run(const graph::Detach&) {
  return ops::detach(tape_, in(0));
}

template <class T>
Var<T> MixerRun<T>::run(const graph::ShareOfHeads& w) {
  return ops::share_of_heads(tape_, in(0), w.begin, w.end);
}

template class MixerRun<float>;
template class MixerRun<double>;

}  // namespace isomer
