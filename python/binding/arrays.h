#pragma once
// Arrays of Python as views of the engine, and back. Nothing is copied but what no law computes with.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "isomer/base/tensor_view.h"

namespace isomer::python {

namespace nb = nanobind;

/// An array of the caller for as long as this lives: whatever speaks the buffer protocol or DLPack, with any strides; or a tuple
/// (address, type, shape, strides), which costs a tenth of DLPack, of memory that the caller keeps. BF16 and F16 become F32, and
/// 32-bit integers I64, which takes a copy.
class Borrowed {
 public:
  /// Throws Error naming the argument: for what is no array, or not in the memory of the CPU, or of a type that no law knows.
  Borrowed(const std::string& name, nb::handle array);
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  [[nodiscard]] const TensorView& view() const { return view_; }

 private:
  /// False: it has none, but DLPack.
  bool take_buffer(const std::string& name, nb::handle array);
  void take_dlpack(const std::string& name, nb::handle array);
  void take_address(const std::string& name, nb::handle tuple);
  void convert();

  TensorView view_;
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  nb::ndarray<nb::ro> array_;
  Tensor copy_;
};

/// A new array of the caller's library and its memory: `empty(shape, type)` makes it, alone or beside its address as above.
struct Made {
  nb::object array;
  MutableTensorView view;
};
[[nodiscard]] Made make_array(nb::handle empty, Type type, const std::vector<Index>& shape);

}  // namespace isomer::python
