#include "isomer/io/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "isomer/base/error.h"
#include "isomer/io/utf8.h"

namespace isomer {

namespace {
// Names stand in error texts; no file in use has longer ones, more axes, or arrays of arrays that deep.
constexpr std::uint64_t kLongestName = 1024, kMostAxes = 8, kDeepest = 4, kLargestAlignment = 1 << 20;

constexpr struct {
  const char* name;
  std::uint64_t bytes;  // 0: of its own length
} kKinds[] = {{"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
              {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class... Parts>
[[noreturn]] void refuse_gguf(const Parts&... parts) {
  fail("gguf", parts...);
}

/// Bytes from the front, never more than there are.
class Cursor {
 public:
  explicit Cursor(GgufBytes bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - at_; }

  GgufBytes take(std::uint64_t count, std::string_view what) {
    if (count > left())
      refuse_gguf("expected ", count, " bytes for ", what, " at byte ", at_, ", got ", left(), "; is the file truncated?");
    const GgufBytes taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::string_view string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    const GgufBytes bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string name(std::string_view what) {
    const std::string_view name = string(what);
    if (name.empty() || name.size() > kLongestName)
      refuse_gguf("expected ", what, " of 1 to ", kLongestName, " bytes, got one of ", name.size());
    if (first_not_utf8(name) != std::string_view::npos ||
        std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }))
      refuse_gguf("expected ", what, " in UTF-8 without control characters, got another at byte ", at_ - name.size());
    return std::string(name);
  }
  GgufBytes since(std::uint64_t begin) const { return bytes_.subspan(begin, at_ - begin); }

 private:
  GgufBytes bytes_;
  std::uint64_t at_ = 0;
};

GgufKind kind_of(std::uint32_t number, const std::string& key) {
  if (number >= std::size(kKinds))
    refuse_gguf("expected a value of kind 0 to ", std::size(kKinds) - 1, " for ", key, ", got ", number);
  return GgufKind(number);
}

void pass(Cursor& from, GgufKind kind, std::uint64_t count, const std::string& key, std::uint64_t depth);

void pass_array(Cursor& from, const std::string& key, std::uint64_t depth) {
  if (depth > kDeepest) refuse_gguf("expected arrays at most ", kDeepest, " deep for ", key);
  const GgufKind kind = kind_of(from.number<std::uint32_t>(key), key);
  pass(from, kind, from.number<std::uint64_t>(key), key, depth);
}

/// Goes past so many values.
void pass(Cursor& from, GgufKind kind, std::uint64_t count, const std::string& key, std::uint64_t depth) {
  const std::uint64_t bytes = kKinds[std::size_t(kind)].bytes;
  // A string has 8 bytes at least, an array 12.
  const std::uint64_t least = bytes > 0 ? bytes : kind == GgufKind::string ? 8 : 12;
  if (count > from.left() / least)
    refuse_gguf("expected ", count, " values of ", kKinds[std::size_t(kind)].name, " for ", key,
                " inside of the file; is it truncated?");
  if (kind == GgufKind::string)
    for (std::uint64_t i = 0; i < count; ++i) (void)from.string(key);
  else if (kind == GgufKind::array)
    for (std::uint64_t i = 0; i < count; ++i) pass_array(from, key, depth + 1);
  else {
    const GgufBytes values = from.take(count * bytes, key);
    if (kind == GgufKind::boolean && std::ranges::any_of(values, [](std::byte b) { return b > std::byte{1}; }))
      refuse_gguf("expected 0 or 1 for ", key, ", got another byte");
  }
}

GgufEntry read_entry(Cursor& from, const std::string& key) {
  GgufEntry entry;
  entry.kind = kind_of(from.number<std::uint32_t>(key), key);
  if (entry.kind == GgufKind::array) {
    entry.array = true;
    entry.kind = kind_of(from.number<std::uint32_t>(key), key);
    entry.count = from.number<std::uint64_t>(key);
  }
  const std::uint64_t begin = from.at();
  pass(from, entry.kind, entry.count, key, 1);
  entry.bytes = from.since(begin);
  return entry;
}

/// A tensor, and where its bytes begin behind the header.
struct Placed {
  std::string name;
  GgufTensor tensor;
  std::uint64_t offset = 0;
};

Placed read_tensor(Cursor& from) {
  Placed placed;
  placed.name = from.name("the name of a tensor");
  const std::string& name = placed.name;
  const auto axes = from.number<std::uint32_t>(name);
  if (axes > kMostAxes) refuse_gguf("expected tensor ", name, " with at most ", kMostAxes, " axes, got ", axes);
  // Without empty axes, so that the strides of an empty tensor are numbers too.
  Index numbers = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) {
    const auto size = from.number<std::uint64_t>(name);
    if (size > std::uint64_t(std::numeric_limits<Index>::max()) ||
        (size > 0 && __builtin_mul_overflow(numbers, Index(size), &numbers)))
      refuse_gguf("the shape of tensor ", name, " is too large");
    placed.tensor.shape.push_back(Index(size));
  }
  std::ranges::reverse(placed.tensor.shape);
  placed.tensor.type = GgufType(from.number<std::uint32_t>(name));
  placed.offset = from.number<std::uint64_t>(name);
  return placed;
}

/// How many bytes a tensor has whose layout we know.
std::uint64_t bytes_of(const Placed& placed, const GgufBlock& block) {
  const std::vector<Index>& shape = placed.tensor.shape;
  const Index row = shape.empty() ? 1 : shape.back();
  if (row % block.numbers != 0)
    refuse_gguf("expected rows of a multiple of ", block.numbers, " numbers for tensor ", placed.name, " of ",
                name_of(placed.tensor.type), ", got ", row);
  // Rows of no numbers have no bytes, however many there are.
  Index bytes = block.bytes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Index size = axis + 1 == shape.size() ? shape[axis] / block.numbers : shape[axis];
    if (size == 0) return 0;
    if (__builtin_mul_overflow(bytes, size, &bytes)) refuse_gguf("the shape of tensor ", placed.name, " is too large");
  }
  return std::uint64_t(bytes);
}

std::uint64_t alignment_of(const GgufHeader& header) {
  const auto found = header.metadata.find("general.alignment");
  if (found == header.metadata.end()) return 32;
  const auto values = decode_integers(found->second, found->first);
  if (found->second.array || values.front() < 1 || values.front() > std::int64_t(kLargestAlignment) ||
      !std::has_single_bit(std::uint64_t(values.front())))
    refuse_gguf("expected a power of two up to ", kLargestAlignment, " for general.alignment, got another");
  return std::uint64_t(values.front());
}

std::uint32_t read_version(Cursor& from) {
  const GgufBytes magic = from.take(4, "the magic number");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) refuse_gguf("expected a file that begins with GGUF, got another");
  const auto version = from.number<std::uint32_t>("the version");
  if (version != 0 && version << 16 == 0) refuse_gguf("expected a little-endian file, got a big-endian one");
  if (version != 2 && version != 3) refuse_gguf("expected version 2 or 3, got ", version);
  return version;
}
}  // namespace

GgufHeader parse_gguf(GgufBytes file) {
  Cursor from(file);
  GgufHeader header;
  header.version = read_version(from);
  const auto tensors = from.number<std::uint64_t>("the number of tensors");
  const auto entries = from.number<std::uint64_t>("the number of keys");
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string key = from.name("a key");
    if (!header.metadata.emplace(key, read_entry(from, key)).second) refuse_gguf("expected different keys, got ", key, " twice");
  }
  const std::uint64_t alignment = alignment_of(header);
  std::vector<Placed> placed;
  for (std::uint64_t i = 0; i < tensors; ++i) placed.push_back(read_tensor(from));
  // A file without tensors may end behind its metadata.
  const std::uint64_t begin = std::min((from.at() + alignment - 1) / alignment * alignment, std::uint64_t(file.size()));
  const GgufBytes data = file.subspan(begin);
  for (Placed& one : placed) {
    if (one.offset % alignment != 0)
      refuse_gguf("expected tensor ", one.name, " at a multiple of ", alignment, " bytes, got ", one.offset);
    if (const auto block = block_of(one.tensor.type)) {
      const std::uint64_t bytes = bytes_of(one, *block);
      if (one.offset > data.size() || bytes > data.size() - one.offset)
        refuse_gguf("tensor ", one.name, " has ", bytes, " bytes from byte ", one.offset, " of ", data.size(),
                    "; is the file truncated?");
      one.tensor.bytes = data.subspan(one.offset, bytes);
    }
    if (!header.tensors.emplace(one.name, std::move(one.tensor)).second)
      refuse_gguf("expected different tensors, got ", one.name, " twice");
  }
  return header;
}

std::string description(const GgufEntry& entry) {
  const std::string name = kKinds[std::size_t(entry.kind)].name;
  return entry.array ? "an array of " + name : name;
}

namespace {
[[noreturn]] void refuse_kind(std::string_view key, const char* expected, const GgufEntry& entry) {
  refuse_gguf("expected ", key, " as ", expected, ", got ", description(entry));
}

/// f(value) for every value of an entry of numbers; false for other entries.
template <class F>
bool for_numbers(const GgufEntry& entry, F&& f) {
  const auto each = [&]<class T>() {
    T value{};
    for (std::size_t i = 0; i < entry.count; ++i) {
      std::memcpy(&value, entry.bytes.data() + i * sizeof(T), sizeof(T));
      f(value);
    }
    return true;
  };
  switch (entry.kind) {
    case GgufKind::u8:
    case GgufKind::boolean: return each.template operator()<std::uint8_t>();
    case GgufKind::i8: return each.template operator()<std::int8_t>();
    case GgufKind::u16: return each.template operator()<std::uint16_t>();
    case GgufKind::i16: return each.template operator()<std::int16_t>();
    case GgufKind::u32: return each.template operator()<std::uint32_t>();
    case GgufKind::i32: return each.template operator()<std::int32_t>();
    case GgufKind::f32: return each.template operator()<float>();
    case GgufKind::u64: return each.template operator()<std::uint64_t>();
    case GgufKind::i64: return each.template operator()<std::int64_t>();
    case GgufKind::f64: return each.template operator()<double>();
    default: return false;
  }
}
}  // namespace

std::vector<std::string> decode_texts(const GgufEntry& entry, std::string_view key) {
  if (entry.kind != GgufKind::string) refuse_kind(key, "string", entry);
  std::vector<std::string> texts;
  texts.reserve(entry.count);
  Cursor from(entry.bytes);
  for (std::uint64_t i = 0; i < entry.count; ++i) texts.emplace_back(from.string(key));
  return texts;
}

std::vector<std::int64_t> decode_flags(const GgufEntry& entry, std::string_view key) {
  if (entry.kind != GgufKind::boolean) refuse_kind(key, "bool", entry);
  return decode_integers(entry, key);
}

std::vector<std::int64_t> decode_integers(const GgufEntry& entry, std::string_view key) {
  std::vector<std::int64_t> integers;
  const auto add = [&](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      refuse_kind(key, "whole numbers", entry);
    } else {
      if (!std::in_range<std::int64_t>(value)) refuse_gguf("expected ", key, " as whole numbers below 2^63, got ", value);
      integers.push_back(std::int64_t(value));
    }
  };
  if (!for_numbers(entry, add)) refuse_kind(key, "whole numbers", entry);
  return integers;
}

std::vector<double> decode_numbers(const GgufEntry& entry, std::string_view key) {
  std::vector<double> numbers;
  if (!for_numbers(entry, [&](auto value) { numbers.push_back(double(value)); })) refuse_kind(key, "numbers", entry);
  return numbers;
}

}  // namespace isomer
