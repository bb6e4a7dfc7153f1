#pragma once
// What a mixer remembers of the tokens it has seen: the states of its laws, the last tokens of convolutions and shifts, running
// sums, and how many tokens there were. A plain value: copy it to fork a stream.
//
//   MixerState<float> state = mixer.start(1);
//   (void)mixer.prefill(tape, prompt, state);            // any number of tokens, any number of times
//   MixerState<float> fork = state;                      // two continuations of one prompt
//   state.save("state.safetensors");
//   MixerState<float> later = mixer.load("state.safetensors");
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor.h"
#include "isomer/mixers/graph.h"

namespace isomer {

/// Dense numbers under a name.
template <class T>
struct StateArray {
  std::string_view name;
  std::vector<Index> shape;
  std::vector<T> data;
  std::size_t place = 0;  // of a law's: among its states

  StateArray(std::string_view own_name, std::vector<Index> own_shape, T value = T(0), std::size_t own_place = 0);
  [[nodiscard]] LawView tensor();
  template <int R>
  [[nodiscard]] View<T, R> view() {
    View<T, R> view{data.data(), {}, {}};
    Index stride = 1;
    for (std::size_t axis = R; axis-- > 0; stride *= shape[axis]) {
      view.shape[axis] = shape[axis];
      view.stride[axis] = stride;
    }
    return view;
  }
};

/// An owned object whose copies are its clones.
template <class Object>
class Copied : public std::unique_ptr<Object> {
 public:
  Copied() = default;
  Copied(std::unique_ptr<Object> own) : std::unique_ptr<Object>(std::move(own)) {}  // NOLINT(google-explicit-constructor)
  Copied(const Copied& other) : std::unique_ptr<Object>(other ? other->clone() : nullptr) {}
  Copied(Copied&&) noexcept = default;
  Copied& operator=(const Copied& other) { return *this = Copied(other); }
  Copied& operator=(Copied&&) noexcept = default;
  ~Copied() = default;
};

/// Of one node of the graph; most have none.
template <class T>
struct NodeState {
  std::vector<StateArray<T>> arrays = {};
  std::vector<StateArray<double>> sums = {};
  std::vector<Copied<LawStream>> streams = {};  // of a law that keeps more than arrays of fixed sizes: one a sequence
};

template <class T>
class MixerState {
 public:
  /// The state before the first of B sequences' tokens. Throws Error for a mixer that needs the whole sequence at once.
  MixerState(const graph::Graph& graph, Index B);

  [[nodiscard]] Index batch() const { return batch_; }
  /// Tokens seen so far of each sequence.
  [[nodiscard]] std::span<const std::int64_t> positions() const { return positions_; }
  /// Of all numbers that are kept.
  [[nodiscard]] Index bytes() const;

  /// A safetensors file that says to which mixer it belongs.
  void save(const std::string& path) const;
  /// Throws Error "PATH: …" when the file is damaged, of a newer version, or of another mixer.
  static MixerState load(const std::string& path, const graph::Graph& graph);

  /// The same for files that hold several states: names start with `prefix`. assign() throws Error when a name is missing or
  /// has another shape or type, and leaves the state as it was.
  void add_to(Tensors& tensors, const std::string& prefix) const;
  void assign(const Tensors& tensors, const std::string& prefix);

  /// Sequence i alone, and the sequences of another state of the mixer behind its own.
  [[nodiscard]] MixerState sequence(Index i) const;
  void append(const MixerState& other);

  // For the mixer.
  [[nodiscard]] NodeState<T>& node(int i) { return nodes_[std::size_t(i)]; }
  /// By the tokens of each packed sequence, or as many for all.
  void advance(std::span<const std::int64_t> offsets, Index tokens) {
    for (std::size_t i = 0; i < positions_.size(); ++i) positions_[i] += offsets.empty() ? tokens : offsets[i + 1] - offsets[i];
  }

 private:
  std::string fingerprint_;
  Index batch_;
  std::vector<std::int64_t> positions_;
  std::vector<NodeState<T>> nodes_;  // one for each of the graph
};

/// How many sequences a file holds the states of, as it says under `name`. Throws Error when it has fewer bytes than so many
/// states of `bytes_of_one`, before anybody takes memory for them.
[[nodiscard]] Index batch_of_file(const Tensors& tensors, const std::string& name, Index bytes_of_one);

extern template class MixerState<float>;
extern template class MixerState<double>;

}  // namespace isomer
