#include "isomer/nn/mixer_state.h"

#include <algorithm>
#include <utility>

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"
#include "isomer/mixers/fingerprint.h"

namespace isomer {

namespace {
// Of the files; they say it in their metadata.
constexpr const char* kFormat = "isomer mixer state";
constexpr int kVersion = 2;
// More than any stream sees; what a file says is added to.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 48;

/// What a node keeps of B sequences.
template <class T>
struct Start {
  const graph::Graph& graph;
  const graph::Node& node;
  Index B;

  [[nodiscard]] const graph::Node& input(int i) const { return graph.nodes[std::size_t(node.inputs[std::size_t(i)])]; }
  [[nodiscard]] Index channels(int i) const { return input(i).heads * input(i).size; }

  NodeState<T> operator()(const graph::Convolution& w) const { return {.arrays = {{"tail", {B, w.width - 1, channels(0)}}}}; }
  NodeState<T> operator()(const graph::Shift&) const { return {.arrays = {{"tail", {B, input(0).heads, input(0).size}}}}; }
  NodeState<T> operator()(const graph::LocalSum& w) const { return {.arrays = {{"tail", {B, w.width - 1, channels(0)}}}}; }
  NodeState<T> operator()(const graph::RunningSum&) const { return {.sums = {{"sum", {B, input(0).heads, input(0).size}}}}; }
  NodeState<T> operator()(const graph::Mean&) const { return {.sums = {{"sum", {B, input(0).heads, input(0).size}}}}; }
  NodeState<T> operator()(const graph::Law& work) const {
    const LawSizes sizes = graph::law_sizes(graph, node, B, 1);
    NodeState<T> state;
    for (Index b = 0; b < B; ++b)
      if (auto stream = work.law->start(type_of<T>, graph::law_sizes(graph, node, 1, 1)); stream != nullptr)
        state.streams.emplace_back(std::move(stream));
    const std::span<const StateSpec> specs = work.law->law().states();
    for (std::size_t i = 0; i < specs.size() && state.streams.empty(); ++i) {
      if (!work.law->has_state(specs[i], work.given)) continue;
      ISOMER_ASSERT(!specs[i].grows(), "a law whose state grows starts a stream");
      std::vector<Index> shape;
      for (const Letter letter : work.law->state_axes(specs[i], work.given)) shape.push_back(sizes[letter]);
      state.arrays.emplace_back(specs[i].name, std::move(shape), T(specs[i].start), i);
    }
    return state;
  }
  NodeState<T> operator()(const auto&) const { return {}; }
};

template <class U>
Tensor tensor_of(const StateArray<U>& array) {
  Tensor tensor(type_of<U>, array.shape);
  std::ranges::copy(array.data, tensor.data<U>());
  return tensor;
}

Tensor tensor_of(std::int64_t number) {
  Tensor tensor(Type::i64, {1});
  tensor.data<std::int64_t>()[0] = number;
  return tensor;
}

template <class U>
void read(const Tensors& tensors, const std::string& prefix, StateArray<U>& array) {
  const Tensor& tensor = expect_tensor(tensors, prefix + std::string(array.name), type_of<U>, array.shape);
  std::copy_n(tensor.data<U>(), tensor.size(), array.data.data());
}

std::int64_t number(const Tensors& tensors, const std::string& name) {
  const std::int64_t n = expect_tensor(tensors, name, Type::i64, {1}).data<std::int64_t>()[0];
  require(n >= 0, "state", "expected ", name, " of at least 0, got ", n);
  return n;
}

std::string stream_name(const std::string& node, std::size_t sequence) {
  return node + "sequences." + std::to_string(sequence) + ".";
}

std::string text(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "none" : found->second;
}

void check(const Metadata& metadata, const std::string& fingerprint) {
  require(text(metadata, "format") == kFormat, "state", "expected the format ", kFormat, ", got ", text(metadata, "format"));
  require(text(metadata, "version") == std::to_string(kVersion), "state", "expected version ", kVersion, ", got ",
          text(metadata, "version"));
  require(text(metadata, "fingerprint") == fingerprint, "state", "expected one of the mixer ", fingerprint, ", got one of ",
          text(metadata, "fingerprint"));
}
}  // namespace

Index batch_of_file(const Tensors& tensors, const std::string& name, Index bytes_of_one) {
  const Index B = number(tensors, name);
  Index bytes = 0;
  for (const auto& [key, tensor] : tensors) bytes += tensor.size() * bytes_of(tensor.type());
  require(B <= bytes / std::max<Index>(bytes_of_one, 1), "state", "expected the numbers of ", B, " sequences, got ", bytes,
          " bytes");
  return B;
}

template <class T>
StateArray<T>::StateArray(std::string_view own_name, std::vector<Index> own_shape, T value, std::size_t own_place)
    : name(own_name), shape(std::move(own_shape)), place(own_place) {
  Index size = 1;
  for (const Index n : shape) size *= n;
  data.assign(std::size_t(size), value);
}

template <class T>
LawView StateArray<T>::tensor() {
  LawView view{.data = data.data(), .type = type_of<T>, .rank = int(shape.size())};
  Index stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    view.shape[axis] = shape[axis];
    view.stride[axis] = stride;
  }
  return view;
}

template <class T>
MixerState<T>::MixerState(const graph::Graph& graph, Index B)
    : fingerprint_(graph::fingerprint(graph)), batch_(B), positions_(std::size_t(std::max<Index>(B, 0))) {
  require(graph::causal(graph), "state", "expected a causal mixer, got ", graph.preset, ", which reads whole sequences");
  require(B > 0, "state", "expected at least one sequence, got ", B);
  for (const graph::Node& node : graph.nodes)
    nodes_.push_back(std::visit([&](const auto& work) { return Start<T>{graph, node, B}(work); }, node.work));
}

template <class T>
Index MixerState<T>::bytes() const {
  Index bytes = 0;
  for (const NodeState<T>& node : nodes_) {
    for (const auto& array : node.arrays) bytes += Index(array.data.size() * sizeof(T));
    for (const auto& sum : node.sums) bytes += Index(sum.data.size() * sizeof(double));
    for (const auto& stream : node.streams) bytes += stream->bytes();
  }
  return bytes;
}

template <class T>
void MixerState<T>::add_to(Tensors& tensors, const std::string& prefix) const {
  tensors.insert_or_assign(prefix + "batch", tensor_of(batch_));
  Tensor positions(Type::i64, {batch_});
  std::ranges::copy(positions_, positions.data<std::int64_t>());
  tensors.insert_or_assign(prefix + "positions", std::move(positions));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string own = prefix + "nodes." + std::to_string(i) + ".";
    for (const auto& array : nodes_[i].arrays) tensors.insert_or_assign(own + std::string(array.name), tensor_of(array));
    for (const auto& sum : nodes_[i].sums) tensors.insert_or_assign(own + std::string(sum.name), tensor_of(sum));
    for (std::size_t b = 0; b < nodes_[i].streams.size(); ++b) nodes_[i].streams[b]->add_to(tensors, stream_name(own, b));
  }
}

template <class T>
void MixerState<T>::assign(const Tensors& tensors, const std::string& prefix) {
  MixerState next = *this;
  require(number(tensors, prefix + "batch") == batch_, "state", "expected ", batch_, " sequences, got ",
          number(tensors, prefix + "batch"));
  const Tensor& positions = expect_tensor(tensors, prefix + "positions", Type::i64, {batch_});
  std::copy_n(positions.data<std::int64_t>(), batch_, next.positions_.begin());
  for (const std::int64_t position : next.positions_)
    require(position >= 0 && position <= kMostTokens, "state", "expected positions from 0 to ", kMostTokens, ", got ", position);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string own = prefix + "nodes." + std::to_string(i) + ".";
    for (auto& array : next.nodes_[i].arrays) read(tensors, own, array);
    for (auto& sum : next.nodes_[i].sums) read(tensors, own, sum);
    for (std::size_t b = 0; b < nodes_[i].streams.size(); ++b) next.nodes_[i].streams[b]->assign(tensors, stream_name(own, b));
  }
  *this = std::move(next);
}

namespace {
/// The first axis of every array is the sequence.
template <class U>
void cut(std::vector<StateArray<U>>& arrays, Index i) {
  for (StateArray<U>& array : arrays) {
    const Index size = Index(array.data.size()) / std::exchange(array.shape[0], 1);
    array.data = std::vector<U>(array.data.begin() + i * size, array.data.begin() + (i + 1) * size);
  }
}

template <class U>
void join(std::vector<StateArray<U>>& arrays, const std::vector<StateArray<U>>& others) {
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    arrays[k].shape[0] += others[k].shape[0];
    arrays[k].data.insert(arrays[k].data.end(), others[k].data.begin(), others[k].data.end());
  }
}
}  // namespace

template <class T>
MixerState<T> MixerState<T>::sequence(Index i) const {
  require(i >= 0 && i < batch_, "state", "expected a sequence from 0 to ", batch_ - 1, ", got ", i);
  MixerState one = *this;
  one.batch_ = 1;
  one.positions_ = {positions_[std::size_t(i)]};
  for (NodeState<T>& node : one.nodes_) {
    cut(node.arrays, i);
    cut(node.sums, i);
    if (!node.streams.empty()) node.streams = {node.streams[std::size_t(i)]};
  }
  return one;
}

template <class T>
void MixerState<T>::append(const MixerState& other) {
  require(other.fingerprint_ == fingerprint_, "state", "expected one of the mixer ", fingerprint_, ", got one of ",
          other.fingerprint_);
  batch_ += other.batch_;
  positions_.insert(positions_.end(), other.positions_.begin(), other.positions_.end());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    join(nodes_[i].arrays, other.nodes_[i].arrays);
    join(nodes_[i].sums, other.nodes_[i].sums);
    nodes_[i].streams.insert(nodes_[i].streams.end(), other.nodes_[i].streams.begin(), other.nodes_[i].streams.end());
  }
}

template <class T>
void MixerState<T>::save(const std::string& path) const {
  Tensors tensors;
  add_to(tensors, "");
  write_safetensors(path, tensors, {{"format", kFormat}, {"version", std::to_string(kVersion)}, {"fingerprint", fingerprint_}});
}

template <class T>
MixerState<T> MixerState<T>::load(const std::string& path, const graph::Graph& graph) {
  const SafetensorsFile file = read_safetensors_file(path);
  try {
    check(file.metadata, graph::fingerprint(graph));
    MixerState state(graph, batch_of_file(file.tensors, "batch", MixerState(graph, 1).bytes()));
    state.assign(file.tensors, "");
    return state;
  } catch (const Error& problem) {
    throw Error("cannot load " + path + ": " + problem.what());
  }
}

template struct StateArray<float>;
template struct StateArray<double>;
template class MixerState<float>;
template class MixerState<double>;

}  // namespace isomer
