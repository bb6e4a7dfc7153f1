#pragma once
// A safetensors file, or a sharded set of them, mapped into memory: opening reads the headers, and numbers come from the file
// when they are looked at. For whole small files use safetensors.h.
//
//   const MappedSafetensors weights("model");            // a folder with model.safetensors or model.safetensors.index.json
//   TensorView q = weights.view("layers.0.q.weight");    // into the file, as long as `weights` or a copy of it is there
//   Tensor head = weights.read("head.weight", Type::f32);
//
// Tensors of types that we do not have (masks, quantised weights) are refused when they are asked for, not before. All files are
// checked against their sizes when they are opened, and again whenever a tensor is asked for: one that another program cut
// short is an Error. Cut short while its numbers are being read, it ends the program with SIGBUS, as with any mapped
// file: replace files, never rewrite them in place (write_safetensors replaces). Copies share the mapping; all calls may be made
// from several threads.
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor_view.h"
#include "isomer/io/safetensors.h"

namespace isomer {

class MappedSafetensors {
 public:
  /// A safetensors file, the index of a set of them (….safetensors.index.json: JSON with a weight_map from tensors to files
  /// beside it), or a folder with model.safetensors.index.json or model.safetensors. Of a set the index counts: a tensor that it
  /// does not name is not there. Throws Error "cannot read PATH: what is wrong".
  explicit MappedSafetensors(const std::filesystem::path& path);

  /// In the order of the alphabet, those of other types included.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool contains(std::string_view name) const;
  /// Dense. Throws Error when there is no such tensor (naming the nearest), its type is another, it has more axes than a view, or
  /// the file became shorter. Numbers that the file does not align are copied once.
  [[nodiscard]] TensorView view(std::string_view name) const;
  /// A copy in the type of the file, or converted to another floating type.
  [[nodiscard]] Tensor read(std::string_view name) const;
  [[nodiscard]] Tensor read(std::string_view name, Type type) const;
  /// All that have one of our types.
  [[nodiscard]] TensorViews views() const;
  /// Of the file, or of all files of a set.
  [[nodiscard]] const Metadata& metadata() const;
  /// All tensors together.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace isomer
