#include "isomer/io/gguf.h"

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/io/gguf_header.h"
#include "isomer/io/mapping.h"

namespace isomer {

namespace {
template <class Map>
const auto& expect_in(const Map& all, std::string_view name, const char* what) {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [other, value] : all) names.push_back(other);
  fail("gguf", "there is no ", what, " ", name, did_you_mean(name, names));
}

template <class Map>
std::vector<std::string> names_in(const Map& all) {
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(name);
  return names;
}

/// Quantised numbers into a dense array of a floating type.
void dequantise_into(const GgufTensor& tensor, const MutableTensorView& to) {
  const GgufBlock block = *block_of(tensor.type);
  const Index blocks = Index(tensor.bytes.size()) / block.bytes;
  const std::byte* from = tensor.bytes.data();
  if (to.type == Type::f32) return dequantise(tensor.type, from, blocks, reinterpret_cast<float*>(to.data));
  if (to.type == Type::bf16) return dequantise(tensor.type, from, blocks, reinterpret_cast<Bf16*>(to.data));
  std::array<float, 256> numbers{};
  const TensorView source = dense_view(Type::f32, reinterpret_cast<const std::byte*>(numbers.data()), {block.numbers});
  MutableTensorView target{.type = to.type, .data = to.data, .rank = 1, .shape = source.shape, .stride = source.stride};
  for (Index n = 0; n < blocks; ++n, target.data += block.numbers * bytes_of(to.type)) {
    dequantise(tensor.type, from + n * block.bytes, 1, numbers.data());
    copy_numbers(source, target);
  }
}
}  // namespace

struct Gguf::Shared {
  explicit Shared(const std::filesystem::path& path) : file(path), header(located([&] { return parse_gguf(file.bytes()); })) {}

  /// f(), with the path before what it refuses.
  auto located(const auto& f) const -> decltype(f()) {
    try {
      return f();
    } catch (const Error& problem) {
      file.refuse(problem.what());
    }
  }

  /// A value of metadata, decoded.
  [[nodiscard]] auto value(std::string_view key, bool array, const auto& decode) const {
    file.expect_whole();
    return located([&] {
      const GgufEntry& entry = expect_in(header.metadata, key, "key");
      require(entry.array == array, "gguf", "expected ", key, " as ", array ? "an array" : "one value", ", got ",
              description(entry));
      return decode(entry, key);
    });
  }

  [[nodiscard]] const GgufTensor& tensor(std::string_view name) const {
    return located([&]() -> const GgufTensor& { return expect_in(header.tensors, name, "tensor"); });
  }

  [[nodiscard]] TensorView view(std::string_view name) const {
    const GgufTensor& from = tensor(name);
    const auto type = plain_type(from.type);
    ISOMER_ASSERT(type.has_value(), "only plain numbers are viewed");
    file.expect_whole();
    const std::byte* data = from.bytes.data();
    if (std::uintptr_t(data) % std::uintptr_t(bytes_of(*type)) == 0) return dense_view(*type, data, from.shape);
    const std::lock_guard lock(mutex);
    const auto [found, made] = aligned.try_emplace(std::string(name));
    if (made) {
      found->second = Tensor(*type, from.shape);
      std::memcpy(found->second.bytes(), data, from.bytes.size());
    }
    return view_of(found->second);
  }

  Mapping file;
  GgufHeader header;
  mutable std::mutex mutex;
  mutable std::map<std::string, Tensor, std::less<>> aligned;  // copies of those that are not so in the file
};

Gguf::Gguf(const std::filesystem::path& path) : shared_(std::make_shared<const Shared>(path)) {}

std::uint32_t Gguf::version() const { return shared_->header.version; }

std::vector<std::string> Gguf::keys() const { return names_in(shared_->header.metadata); }

bool Gguf::has(std::string_view key) const { return shared_->header.metadata.contains(key); }

std::string Gguf::kind(std::string_view key) const {
  return shared_->located([&] { return description(expect_in(shared_->header.metadata, key, "key")); });
}

std::string Gguf::text(std::string_view key) const { return shared_->value(key, false, decode_texts).front(); }

bool Gguf::flag(std::string_view key) const { return shared_->value(key, false, decode_flags).front() != 0; }

std::int64_t Gguf::integer(std::string_view key) const { return shared_->value(key, false, decode_integers).front(); }

double Gguf::number(std::string_view key) const { return shared_->value(key, false, decode_numbers).front(); }

std::vector<std::string> Gguf::texts(std::string_view key) const { return shared_->value(key, true, decode_texts); }

std::vector<std::int64_t> Gguf::integers(std::string_view key) const { return shared_->value(key, true, decode_integers); }

std::vector<double> Gguf::numbers(std::string_view key) const { return shared_->value(key, true, decode_numbers); }

std::vector<std::string> Gguf::names() const { return names_in(shared_->header.tensors); }

bool Gguf::contains(std::string_view name) const { return shared_->header.tensors.contains(name); }

const std::vector<Index>& Gguf::shape(std::string_view name) const { return shared_->tensor(name).shape; }

GgufType Gguf::type(std::string_view name) const { return shared_->tensor(name).type; }

TensorView Gguf::view(std::string_view name) const {
  const GgufType got = type(name);
  if (!plain_type(got))
    shared_->file.refuse("gguf: expected plain numbers for tensor " + std::string(name) + ", got " + name_of(got));
  return shared_->view(name);
}

Tensor Gguf::read(std::string_view name, Type type) const {
  // The type of the file is checked before memory is taken for its shape.
  (void)expect_readable(name, type);
  Tensor to(type, shape(name));
  read(name, mutable_view_of(to));
  return to;
}

void Gguf::read(std::string_view name, const MutableTensorView& to) const {
  const bool plain = expect_readable(name, to.type);
  const GgufTensor& from = shared_->tensor(name);
  const TensorView target = to, expected = dense_view(to.type, to.data, from.shape);
  if (target.dims() != expected.dims() || target.stride != expected.stride)
    shared_->file.refuse("gguf: expected a dense array of " + text_of(from.shape) + " for tensor " + std::string(name) +
                         ", got " + text_of(target.dims()));
  if (plain) return copy_numbers(shared_->view(name), to);
  shared_->file.expect_whole();
  dequantise_into(from, to);
}

bool Gguf::expect_readable(std::string_view name, Type type) const {
  const GgufType got = this->type(name);
  const auto plain = plain_type(got);
  const auto refuse = [&](const std::string& expected) {
    shared_->file.refuse("gguf: expected " + expected + " for tensor " + std::string(name) + ", got " + isomer::name_of(got));
  };
  if (!plain && !quantised(got)) refuse("F32, F64, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K");
  if (floating(type) != (!plain || floating(*plain))) refuse(floating(type) ? "floating numbers" : "I64");
  return plain.has_value();
}

std::uint64_t Gguf::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : shared_->header.tensors) bytes += tensor.bytes.size();
  return bytes;
}

}  // namespace isomer
