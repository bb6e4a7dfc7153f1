#include "isomer/models/model_state.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/mixers/fingerprint.h"

namespace isomer {

namespace {
// Of the files; they say it in their metadata.
constexpr const char* kFormat = "isomer model state";
constexpr const char* kStateVersion = "2";

constexpr const char* kLogits = "logits";

std::string prefix(std::size_t layer) { return "layers." + std::to_string(layer) + "."; }

std::string fingerprint(std::span<const graph::Graph* const> layers) {
  std::string all;
  for (const graph::Graph* layer : layers) all.append(all.empty() ? "" : " ").append(graph::fingerprint(*layer));
  return all;
}

void expect_metadata(const Metadata& metadata, const char* key, const std::string& want) {
  const auto found = metadata.find(key);
  const std::string got = found == metadata.end() ? "none" : found->second;
  require(got == want, "state", "expected the ", key, " ", want, ", got ", got);
}

/// Infinite numbers may be part of a state, such as the logarithm of a gate.
template <class T>
bool has_nan(const Tensor& tensor) {
  return std::any_of(tensor.data<T>(), tensor.data<T>() + tensor.size(), [](T x) { return std::isnan(x); });
}

void refuse_nan(const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    require(!(tensor.type() == Type::f32 && has_nan<float>(tensor)) && !(tensor.type() == Type::f64 && has_nan<double>(tensor)),
            "state", "expected numbers, got NaN in ", name);
}
}  // namespace

template <class T>
ModelState<T>::ModelState(std::span<const graph::Graph* const> layers, Index B) : fingerprint_(fingerprint(layers)) {
  for (const graph::Graph* layer : layers) layers_.emplace_back(*layer, B);
}

template <class T>
Index ModelState<T>::bytes() const {
  Index bytes = 0;
  for (const MixerState<T>& layer : layers_) bytes += layer.bytes();
  return bytes;
}

template <class T>
ModelState<T> ModelState<T>::sequence(Index i) const {
  ModelState one = *this;
  for (MixerState<T>& layer : one.layers_) layer = layer.sequence(i);
  const Index size = Index(logits_.size()) / batch();
  one.logits_.assign(logits_.begin() + i * size, logits_.begin() + (i + 1) * size);
  return one;
}

template <class T>
void ModelState<T>::append(const ModelState& other) {
  require(other.fingerprint_ == fingerprint_, "state", "expected one of the layers ", fingerprint_, ", got one of ",
          other.fingerprint_);
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].append(other.layers_[i]);
  logits_.insert(logits_.end(), other.logits_.begin(), other.logits_.end());
}

template <class T>
Tensors ModelState<T>::tensors() const {
  Tensors tensors;
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].add_to(tensors, prefix(i));
  if (has_logits()) {
    Tensor logits(type_of<T>, {batch(), Index(logits_.size()) / batch()});
    std::ranges::copy(logits_, logits.data<T>());
    tensors.emplace(kLogits, std::move(logits));
  }
  return tensors;
}

template <class T>
void ModelState<T>::save(const std::string& path) const {
  Metadata all = notes;
  all.insert({{"format", kFormat}, {"version", kStateVersion}, {"fingerprint", fingerprint_}});
  write_safetensors(path, tensors(), all);
}

template <class T>
ModelState<T> ModelState<T>::load(const std::string& path, std::span<const graph::Graph* const> layers) {
  const SafetensorsFile file = read_safetensors_file(path);
  try {
    expect_metadata(file.metadata, "format", kFormat);
    expect_metadata(file.metadata, "version", kStateVersion);
    expect_metadata(file.metadata, "fingerprint", fingerprint(layers));
    refuse_nan(file.tensors);
    ModelState state(layers, batch_of_file(file.tensors, prefix(0) + "batch", ModelState(layers, 1).bytes()));
    for (std::size_t i = 0; i < state.layers_.size(); ++i) state.layers_[i].assign(file.tensors, prefix(i));
    for (const MixerState<T>& layer : state.layers_)
      for (std::size_t i = 0; i < state.positions().size(); ++i)
        require(layer.positions()[i] == state.positions()[i], "state", "expected ", state.positions()[i],
                " tokens in every layer, got ", layer.positions()[i]);
    if (const auto logits = file.tensors.find(kLogits); logits != file.tensors.end()) {
      const Tensor& t = logits->second;
      require(t.type() == type_of<T> && t.shape().size() == 2 && t.shape()[0] == state.batch(), "state", "expected logits ",
              name_of(type_of<T>), " [", state.batch(), ", labels], got ", name_of(t.type()), " ", text_of(t.shape()));
      state.logits_.assign(t.data<T>(), t.data<T>() + t.size());
    }
    for (const auto& [key, text] : file.metadata)
      if (key != "format" && key != "version" && key != "fingerprint") state.notes.emplace(key, text);
    return state;
  } catch (const Error& problem) {
    throw Error("cannot load " + path + ": " + problem.what());
  }
}

template class ModelState<float>;
template class ModelState<double>;

}  // namespace isomer
