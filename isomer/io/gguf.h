#pragma once
// A GGUF file (versions 2 and 3, little-endian), mapped into memory: metadata and tensors, plain or quantised.
//
//   const Gguf file("model.gguf");
//   std::string architecture = file.text("general.architecture");  // "llama"
//   TensorView norm = file.view("output_norm.weight");             // into the file, as long as `file` or a copy is there
//   Tensor q = file.read("blk.0.attn_q.weight", Type::bf16);       // dequantised
//
// Shapes are row-major, as everywhere here: the file's dimensions in reverse. Quantised types Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K,
// Q5_K and Q6_K are dequantised; others are refused by name when their numbers are asked for, not before. Opening checks all that
// the file says against its size; a file that is cut short later is an Error when a tensor is asked for (safetensors_map.h has
// the rest about mapped files). Copies share the mapping; all calls may be made from several threads.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/tensor_view.h"
#include "isomer/io/gguf_dequantise.h"

namespace isomer {

class Gguf {
 public:
  /// Throws Error "cannot read PATH: gguf: what is wrong".
  explicit Gguf(const std::filesystem::path& path);

  [[nodiscard]] std::uint32_t version() const;

  /// Keys of metadata in the order of the alphabet.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] bool has(std::string_view key) const;
  /// Values. Throw Error when there is no such key (naming the nearest) or it is of another kind. Any kind of whole number is an
  /// integer, any number is a number; lists are arrays of any length, not arrays of arrays.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const;
  /// "u32", "an array of string": what a key has.
  [[nodiscard]] std::string kind(std::string_view key) const;

  /// Names of tensors in the order of the alphabet, those of other types included.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool contains(std::string_view name) const;
  [[nodiscard]] const std::vector<Index>& shape(std::string_view name) const;
  [[nodiscard]] GgufType type(std::string_view name) const;
  /// Of a tensor that is not quantised: F32, F64, F16, BF16, I64. Throws Error for others.
  [[nodiscard]] TensorView view(std::string_view name) const;
  /// A copy in a floating type, dequantised or converted.
  [[nodiscard]] Tensor read(std::string_view name, Type type) const;
  /// The same into memory of the caller's: dense, of the shape of the tensor.
  void read(std::string_view name, const MutableTensorView& to) const;
  /// All tensors together.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Shared;
  /// Throws Error unless the tensor can be read as this type; is it plain, not quantised?
  [[nodiscard]] bool expect_readable(std::string_view name, Type type) const;

  std::shared_ptr<const Shared> shared_;
};

}  // namespace isomer
