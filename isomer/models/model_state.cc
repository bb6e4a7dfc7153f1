#include "isomer/models/model_state.h"

#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"
#include "isomer/mixers/fingerprint.h"

namespace isomer {

namespace {
// Of the files; they say it in their metadata.
constexpr const char* kFormat = "isomer model state";
constexpr const char* kVersion = "2";

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
void ModelState<T>::save(const std::string& path) const {
  Tensors tensors;
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].add_to(tensors, prefix(i));
  write_safetensors(path, tensors, {{"format", kFormat}, {"version", kVersion}, {"fingerprint", fingerprint_}});
}

template <class T>
ModelState<T> ModelState<T>::load(const std::string& path, std::span<const graph::Graph* const> layers) {
  const SafetensorsFile file = read_safetensors_file(path);
  try {
    expect_metadata(file.metadata, "format", kFormat);
    expect_metadata(file.metadata, "version", kVersion);
    expect_metadata(file.metadata, "fingerprint", fingerprint(layers));
    ModelState state(layers, batch_of_file(file.tensors, prefix(0) + "batch", ModelState(layers, 1).bytes()));
    for (std::size_t i = 0; i < state.layers_.size(); ++i) state.layers_[i].assign(file.tensors, prefix(i));
    for (const MixerState<T>& layer : state.layers_)
      for (std::size_t i = 0; i < state.positions().size(); ++i)
        require(layer.positions()[i] == state.positions()[i], "state", "expected ", state.positions()[i],
                " tokens in every layer, got ", layer.positions()[i]);
    return state;
  } catch (const Error& problem) {
    throw Error("cannot load " + path + ": " + problem.what());
  }
}

template class ModelState<float>;
template class ModelState<double>;

}  // namespace isomer
