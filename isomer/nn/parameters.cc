#include "isomer/nn/parameters.h"

#include <algorithm>
#include <utility>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/base/suggest.h"
#include "isomer/io/safetensors_map.h"

namespace isomer {

namespace {
Index size_of(const std::vector<Index>& shape) {
  Index size = 1;
  for (const Index n : shape) size *= n;
  return size;
}

/// A dense array with leading axes of 1.
template <class T>
View<T, 4> with_four_axes(T* data, const std::vector<Index>& shape) {
  View<T, 4> view{data, {1, 1, 1, 1}, {}};
  std::copy(shape.begin(), shape.end(), view.shape.end() - Index(shape.size()));
  Index stride = 1;
  for (std::size_t axis = 4; axis-- > 0; stride *= view.shape[axis]) view.stride[axis] = stride;
  return view;
}
}  // namespace

template <class T>
MutableTensorView Parameter<T>::numbers() const {
  std::byte* const first = var.stored() ? var.slot->stored : reinterpret_cast<std::byte*>(var.slot->base);
  const TensorView view = dense_view(storage(), nullptr, spec.shape);
  return {view.type, first + offset * bytes_of(view.type), view.rank, view.shape, view.stride};
}

template <class T>
Parameters<T>::Parameters(Type storage, GivenNumbers given) : storage_(storage), given_(std::move(given)) {
  const bool sixteen = storage == Type::bf16 || storage == Type::f16;
  require(storage == type_of<T> || (sixteen && std::is_same_v<T, float>), "parameters", "expected matrices stored as ",
          std::is_same_v<T, float> ? "F32, BF16 or F16" : "F64", ", got ", name_of(storage));
}

/// Where the numbers of all parts are, one behind the other; null where they are not.
template <class T>
std::byte* Parameters<T>::in_place(std::span<const ParameterSpec> parts, Type type) const {
  const std::byte *first = nullptr, *end = nullptr;
  for (const ParameterSpec& part : parts) {
    const auto found = given_.views.find(part.name);
    if (found == given_.views.end()) return nullptr;
    const TensorView& view = found->second;
    const bool dense = view.stride == dense_view(type, nullptr, part.shape).stride;
    if (view.type != type || view.dims() != part.shape || !dense || (end != nullptr && view.data != end)) return nullptr;
    if (first == nullptr) first = view.data;
    end = view.data + view.size() * bytes_of(type);
  }
  return const_cast<std::byte*>(first);  // NOLINT(cppcoreguidelines-pro-type-const-cast): as GivenNumbers says
}

template <class T>
auto Parameters<T>::allocate(std::span<const ParameterSpec> parts) -> Memory& {
  Index size = 0;
  for (const ParameterSpec& part : parts) size += size_of(part.shape);
  const bool stored = parts[0].reader == Reader::products && storage_ != type_of<T>;
  std::byte* there = in_place(parts, stored ? storage_ : type_of<T>);
  Memory& memory = memory_.emplace_back();
  if (stored) {
    if (there == nullptr) memory.stored = Buffer<std::byte>(size * bytes_of(storage_));
    memory.slot = {.size = size, .persistent = true, .stored = there != nullptr ? there : memory.stored.data(), .type = storage_};
    return memory;
  }
  if (there == nullptr) memory.values = Buffer<T>(size);
  // Gradients of a model that is only run are never touched, and so cost no memory but addresses.
  memory.gradients = Buffer<T>(size);
  memory.slot = {
      .base = there != nullptr ? reinterpret_cast<T*>(there) : memory.values.data(),
      .grad = memory.gradients.data(),
      .size = size,
      .wanted = std::ranges::any_of(parts, [](const ParameterSpec& part) { return part.training == graph::Training::trained; }),
      .persistent = true};
  return memory;
}

template <class T>
const Parameter<T>& Parameters<T>::list(ParameterSpec spec, Index offset, Memory& memory) {
  require(by_name_.emplace(spec.name, all_.size()).second, "parameters", "expected a new name, got ", spec.name, " again");
  const View<T, 4> view = with_four_axes(memory.slot.base == nullptr ? nullptr : memory.slot.base + offset, spec.shape);
  return all_.emplace_back(Parameter<T>{std::move(spec), {view, &memory.slot}, offset});
}

template <class T>
const Parameter<T>& Parameters<T>::add(ParameterSpec spec) {
  ISOMER_ASSERT(spec.shape.size() <= 4, "a parameter has at most four axes");
  Memory& memory = allocate({&spec, 1});
  return list(std::move(spec), 0, memory);
}

template <class T>
const Parameter<T>& Parameters<T>::share(ParameterSpec spec) {
  const auto found = by_name_.find(spec.name);
  if (found == by_name_.end()) return add(std::move(spec));
  const Parameter<T>& there = all_[found->second];
  require(there.spec.shape == spec.shape, "parameters", "expected ", spec.name, " ", text_of(there.spec.shape),
          " as in another layer, got ", text_of(spec.shape));
  return there;
}

template <class T>
Var<T> Parameters<T>::add_block(std::vector<ParameterSpec> parts) {
  ISOMER_ASSERT(!parts.empty(), "a block has parts");
  Index rows = 0;
  for (const ParameterSpec& part : parts) {
    ISOMER_ASSERT(part.shape.size() == 1 || (part.shape.size() == 2 && part.shape[1] == parts[0].shape[1]),
                  "parts of a block have equally long rows");
    rows += part.shape[0];
  }
  std::vector<Index> shape = parts[0].shape;
  shape[0] = rows;
  Memory& memory = allocate(parts);
  Index offset = 0;
  for (ParameterSpec& part : parts) {
    ISOMER_ASSERT(part.reader == parts[0].reader, "parts of a block are stored alike");
    const Index own = size_of(part.shape);
    if (!part.name.empty())
      list(std::move(part), offset, memory);
    else if (memory.slot.stored != nullptr)
      std::fill_n(memory.slot.stored + offset * bytes_of(storage_), own * bytes_of(storage_), std::byte{0});
    else
      std::fill_n(memory.slot.base + offset, own, T(0));
    offset += own;
  }
  return {with_four_axes(memory.slot.base, shape), &memory.slot};
}

template <class T>
const Parameter<T>& Parameters<T>::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found != by_name_.end()) return all_[found->second];
  std::vector<std::string> names;
  for (const Parameter<T>& p : all_) names.push_back(p.name());
  fail("parameters", "there is no ", name, did_you_mean(name, names));
}

template <class T>
Index Parameters<T>::trained_size() const {
  Index size = 0;
  for (const Parameter<T>& p : all_)
    if (p.trained()) size += p.var.value.size();
  return size;
}

template <class T>
Index Parameters<T>::own_bytes() const {
  Index bytes = 0;
  for (const Memory& memory : memory_) bytes += memory.stored.size() + memory.values.size() * Index(sizeof(T));
  return bytes;
}

template <class T>
void Parameters<T>::multiply_in_bf16() {
  require(storage_ == Type::bf16, "parameters", "expected weights in BF16 to multiply in bf16, got ", name_of(storage_));
  for (Memory& memory : memory_) memory.slot.rows = RowsOfA::bf16;
}

template <class T>
void Parameters<T>::freeze(const std::function<bool(const std::string& name)>& frozen) {
  for (Memory& memory : memory_) memory.slot.wanted = false;
  for (Parameter<T>& p : all_) {
    if (frozen(p.name())) p.spec.training = graph::Training::fixed;
    // Those of a block share a slot: their gradients arrive together if one is wanted.
    p.var.slot->wanted = p.var.slot->wanted || (p.trained() && !p.var.stored());
  }
}

template <class T>
void Parameters<T>::zero_gradients() {
  for (Memory& memory : memory_) memory.slot.written = false;
}

template <class T>
void Parameters<T>::group_gradients(std::size_t groups, const std::function<std::size_t(const Parameter<T>&)>& group_of) {
  zero_gradients();
  std::unordered_map<internal::Slot<T>*, std::size_t> group;
  for (const Parameter<T>& p : all_)
    if (p.trained()) group.try_emplace(p.var.slot, group_of(p));
  // Each begins where a buffer of its own would: aligned as vectors are.
  const auto padded = [](Index size) { return round_up(size, Index(internal::kAlignment / sizeof(T))); };
  std::vector<Index> sizes(groups);
  for (Memory& memory : memory_)
    if (const auto found = group.find(&memory.slot); found != group.end()) sizes[found->second] += padded(memory.slot.size);
  std::vector<Buffer<T>> arrays;
  for (Index& size : sizes) arrays.emplace_back(std::exchange(size, 0));
  for (Memory& memory : memory_) {
    const auto found = group.find(&memory.slot);
    if (found == group.end()) {
      memory.slot.grad = memory.gradients.data();
      continue;
    }
    const Index size = memory.slot.size, begin = std::exchange(sizes[found->second], sizes[found->second] + padded(size));
    memory.slot.grad = arrays[found->second].data() + begin;
    std::fill(memory.slot.grad + size, memory.slot.grad + padded(size), T(0));
    memory.gradients = Buffer<T>();
  }
  groups_ = std::move(arrays);
}

template <class T>
std::vector<std::span<T>> Parameters<T>::gradient_groups() {
  for (Memory& memory : memory_) {
    if (!memory.slot.wanted || memory.slot.written) continue;
    std::fill_n(memory.slot.grad, memory.slot.size, T(0));
    memory.slot.written = true;
  }
  std::vector<std::span<T>> all;
  for (Buffer<T>& array : groups_) all.emplace_back(array.data(), std::size_t(array.size()));
  return all;
}

template <class T>
Tensors Parameters<T>::tensors() const {
  Tensors all;
  for (const Parameter<T>& p : all_) {
    Tensor tensor(p.storage(), p.spec.shape);
    copy_numbers(p.numbers(), mutable_view_of(tensor));
    all.emplace(p.name(), std::move(tensor));
  }
  return all;
}

template <class T>
std::string Parameters<T>::fingerprint() const {
  std::uint64_t hash = kHashStart;
  for (const Parameter<T>& p : all_) {
    hash = hash_of(p.name() + " " + std::string(name_of(p.storage())) + " " + text_of(p.spec.shape), hash);
    hash = hash_of({p.numbers().data, std::size_t(p.bytes())}, hash);
  }
  return hex_of(hash);
}

template <class T>
void Parameters<T>::assign(const Tensors& tensors) {
  assign(views_of(tensors));
}

template <class T>
void Parameters<T>::assign(const TensorViews& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const Parameter<T>& p = find(name);
    require(floating(tensor.type), "parameters", "expected ", name, " as F32, F64, BF16 or F16, got ", name_of(tensor.type));
    require(tensor.dims() == p.spec.shape, "parameters", "expected ", name, " ", text_of(p.spec.shape), ", got ",
            text_of(tensor.dims()));
  }
  for (const Parameter<T>& p : all_)
    require(tensors.contains(p.name()), "parameters", "expected ", p.name(), " ", text_of(p.spec.shape), ", found none");
  for (const Parameter<T>& p : all_)
    if (const TensorView& from = tensors.find(p.name())->second; from.data != p.numbers().data) copy_numbers(from, p.numbers());
  // Where they are from may go away now, but for what stays in place, which has its owner.
  given_.views.clear();
}

template <class T>
void Parameters<T>::save(const std::string& path) const {
  write_safetensors(path, tensors());
}

template <class T>
void Parameters<T>::load(const std::string& path) {
  const MappedSafetensors file(path);
  TensorViews tensors;
  for (const std::string& name : file.names()) tensors.emplace(name, file.view(name));
  assign(tensors);
}

template struct Parameter<float>;
template struct Parameter<double>;
template class Parameters<float>;
template class Parameters<double>;

}  // namespace isomer
