#include "python/binding/arrays.h"

#include <nanobind/stl/string.h>

#include <optional>

namespace isomer::python {

namespace {
constexpr int kInt32 = 5;  // behind the numbers of Type

/// A number's format as the struct module writes it: kind and size say enough on one machine.
struct Element {
  char kind = 0;  // 'f'loat, 'b'rain float, 'i'nteger
  Index bytes = 0;
};

std::optional<Element> element_of(const char* format, Index bytes) {
  const std::string_view text = format == nullptr ? "B" : format;
  const std::string_view letter =
      text.size() == 2 && (text[0] == '@' || text[0] == '=' || text[0] == '<') ? text.substr(1) : text;
  if (letter == "e" || letter == "f" || letter == "d") return Element{'f', bytes};
  if (letter == "i" || letter == "l" || letter == "q") return Element{'i', bytes};
  return {};
}

/// The type that an array is read as; 32-bit integers are read by convert().
std::optional<Type> type_of_element(const Element& element) {
  if (element.kind == 'b') return element.bytes == 2 ? std::optional(Type::bf16) : std::nullopt;
  if (element.kind == 'i') return element.bytes == 8 ? std::optional(Type::i64) : std::nullopt;
  if (element.bytes == 2) return Type::f16;
  if (element.bytes == 4) return Type::f32;
  return element.bytes == 8 ? std::optional(Type::f64) : std::nullopt;
}

[[noreturn]] void refuse_type(const std::string& name, const std::string& got) {
  throw Error("expected " + name + " of type float32, float64, bfloat16 or float16 (offsets: int64), got " + got);
}

/// What stands for the memory of an array without numbers: it is there, and nobody reads it.
const std::byte kNothing[8]{};

void set_axes(const std::string& name, int rank, TensorView& view) {
  if (rank > TensorView::kMostAxes)
    throw Error("expected " + name + " of at most " + std::to_string(TensorView::kMostAxes) + " axes, got " +
                std::to_string(rank));
  view.rank = rank;
}

/// The number of its kind of device, which may be of an enumeration.
long device_of(nb::handle array) {
  const nb::object device = array.attr("__dlpack_device__")(), kind = device[0];
  const long number = PyLong_AsLong(kind.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

bool is_bf16_of_numpy(nb::handle array) {
  if (!nb::hasattr(array, "__array_interface__") || !nb::hasattr(array, "dtype")) return false;
  const nb::object type = array.attr("dtype");
  return nb::cast<std::string>(nb::str(nb::handle(type))) == "bfloat16";
}

Tensor widened(const TensorView& from) {
  Tensor to(Type::i64, from.dims());
  MutableTensorView target = mutable_view_of(to);
  Index count = to.size();
  std::array<Index, TensorView::kMostAxes> at{};
  for (Index i = 0; i < count; ++i) {
    const std::int32_t* x = reinterpret_cast<const std::int32_t*>(from.data);
    for (int axis = 0; axis < from.rank; ++axis) x += at[std::size_t(axis)] * from.stride[std::size_t(axis)];
    reinterpret_cast<std::int64_t*>(target.data)[i] = *x;
    for (int axis = from.rank - 1; axis >= 0 && ++at[std::size_t(axis)] == from.shape[std::size_t(axis)]; --axis)
      at[std::size_t(axis)] = 0;
  }
  return to;
}
}  // namespace

Borrowed::Borrowed(const std::string& name, nb::handle array) {
  if (nb::isinstance<nb::tuple>(array))
    take_address(name, array);
  else if (PyObject_CheckBuffer(array.ptr()) == 0 || !take_buffer(name, array))
    take_dlpack(name, array);
  if (view_.data == nullptr) view_.data = kNothing;
  convert();
}

Borrowed::~Borrowed() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

bool Borrowed::take_buffer(const std::string& name, nb::handle array) {
  constexpr int kFlags = PyBUF_STRIDES | PyBUF_FORMAT;
  bool brain = false;
  if (PyObject_GetBuffer(array.ptr(), &buffer_, kFlags) != 0) {
    PyErr_Clear();
    // BF16 has no letter among formats: of NumPy it is taken as integers of 16 bits.
    brain = is_bf16_of_numpy(array);
    if (!brain && nb::hasattr(array, "__dlpack__")) return false;
    if (!brain) refuse_type(name, "an array without a buffer of numbers");
    const nb::object bits = array.attr("view")("uint16");
    if (PyObject_GetBuffer(bits.ptr(), &buffer_, kFlags) != 0) throw nb::python_error();
  }
  has_buffer_ = true;
  const std::optional<Element> element = brain ? Element{'b', 2} : element_of(buffer_.format, buffer_.itemsize);
  const bool narrow = element && element->kind == 'i' && element->bytes == 4;
  const std::optional<Type> type = narrow ? Type::i64 : element ? type_of_element(*element) : std::nullopt;
  if (!type) {
    const std::string format = buffer_.format == nullptr ? "bytes" : std::string("format ") + buffer_.format;
    PyBuffer_Release(&buffer_);
    has_buffer_ = false;
    refuse_type(name, format);
  }
  view_.type = *type;
  view_.data = static_cast<const std::byte*>(buffer_.buf);
  set_axes(name, buffer_.ndim, view_);
  for (std::size_t i = 0; i < std::size_t(buffer_.ndim); ++i) {
    if (buffer_.strides[i] % buffer_.itemsize != 0)
      throw Error("expected " + name + " with strides of whole numbers, got one of " + std::to_string(buffer_.strides[i]) +
                  " bytes");
    view_.shape[i] = buffer_.shape[i];
    view_.stride[i] = buffer_.strides[i] / buffer_.itemsize;
  }
  if (narrow) copy_ = widened(view_), view_ = view_of(copy_);
  return true;
}

void Borrowed::take_dlpack(const std::string& name, nb::handle array) {
  const std::string type_name = nb::cast<std::string>(nb::str(nb::handle(array.type())));
  if (!nb::hasattr(array, "__dlpack__")) throw Error("expected an array as " + name + ", got " + type_name);
  const bool here = !nb::hasattr(array, "__dlpack_device__") || device_of(array) == nb::device::cpu::value;
  if (!here || (nb::try_cast(array, array_) && array_.is_valid() && array_.device_type() != nb::device::cpu::value))
    throw Error("expected " + name + " in the memory of the CPU, got another device");
  if (!array_.is_valid()) throw Error("expected an array that DLPack gives as " + name + ", got " + type_name);
  const nb::dlpack::dtype type = array_.dtype();
  const char kind = type.code == std::uint8_t(nb::dlpack::dtype_code::Float)    ? 'f'
                    : type.code == std::uint8_t(nb::dlpack::dtype_code::Bfloat) ? 'b'
                    : type.code == std::uint8_t(nb::dlpack::dtype_code::Int)    ? 'i'
                                                                                : '\0';
  const Element element{kind, type.lanes == 1 ? type.bits / 8 : 0};
  const bool narrow = element.kind == 'i' && element.bytes == 4;
  const std::optional<Type> own = narrow ? Type::i64 : element.kind == 0 ? std::nullopt : type_of_element(element);
  if (!own) refuse_type(name, "another");
  view_.type = *own;
  view_.data = static_cast<const std::byte*>(array_.data());
  set_axes(name, int(array_.ndim()), view_);
  for (std::size_t i = 0; i < array_.ndim(); ++i) view_.shape[i] = Index(array_.shape(i)), view_.stride[i] = array_.stride(i);
  if (narrow) copy_ = widened(view_), view_ = view_of(copy_);
}

void Borrowed::take_address(const std::string& name, nb::handle tuple) {
  const nb::handle shape = tuple[2], stride = tuple[3];
  const int type = nb::cast<int>(tuple[1]);
  const bool narrow = type == kInt32;
  view_.type = narrow ? Type::i64 : Type(type);
  view_.data = reinterpret_cast<const std::byte*>(nb::cast<std::uintptr_t>(tuple[0]));
  set_axes(name, int(nb::len(shape)), view_);
  for (std::size_t i = 0; i < std::size_t(view_.rank); ++i)
    view_.shape[i] = nb::cast<Index>(shape[i]), view_.stride[i] = nb::cast<Index>(stride[i]);
  if (view_.data == nullptr && view_.size() > 0) throw Error("expected " + name + " in the memory of the CPU, got none");
  if (narrow) copy_ = widened(view_), view_ = view_of(copy_);
}

void Borrowed::convert() {
  if (!floating(view_.type) || computable(view_.type)) return;
  copy_ = Tensor(Type::f32, view_.dims());
  copy_numbers(view_, mutable_view_of(copy_));
  view_ = view_of(copy_);
}

Made make_array(nb::handle empty, Type type, const std::vector<Index>& shape) {
  nb::list sizes;
  for (const Index size : shape) sizes.append(size);
  Made made{.array = empty(sizes, name_of(type)), .view = {}};
  nb::object place = made.array;
  if (nb::isinstance<nb::tuple>(made.array)) place = made.array[1], made.array = nb::object(made.array[0]);
  const Borrowed memory("an output", place);
  const TensorView& view = memory.view();
  made.view = {view.type, const_cast<std::byte*>(view.data), view.rank, view.shape, view.stride};
  return made;
}

}  // namespace isomer::python
