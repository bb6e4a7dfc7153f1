#include "isomer/io/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "isomer/base/error.h"

namespace isomer {

namespace {
// Names stand in error texts, and no array of ours has more axes.
constexpr std::size_t kLongestTensorName = 1024, kLargestRank = 32;
constexpr std::uint64_t kLongestHeader = 100'000'000;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail("safetensors", parts...);
}

/// What one tensor's object holds, as far as it has been read.
struct Fields {
  std::string name, dtype;
  std::vector<std::uint64_t> shape, offsets;
  std::set<std::string> seen;
};

constexpr Type kReadTypes[] = {Type::f32, Type::f64, Type::bf16, Type::f16, Type::i64};

/// Types of the format that others write (masks, position numbers, quantised weights): a file may hold them beside what is asked
/// for.
constexpr struct {
  const char* name;
  Index bytes;
} kOthers[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
               {"I16", 2},  {"U16", 2}, {"I32", 4}, {"U32", 4},     {"U64", 8},     {"C64", 8}};

[[noreturn]] void refuse_type(const SafetensorsEntry& entry) {
  refuse("expected dtype F32, F64, BF16, F16 or I64 for tensor ", entry.name, ", got ", entry.dtype);
}

Index bytes_of_other(const SafetensorsEntry& entry) {
  for (const auto& other : kOthers)
    if (entry.dtype == other.name) return other.bytes;
  refuse_type(entry);
}

SafetensorsEntry checked(const Fields& fields) {
  for (const char* field : {"dtype", "shape", "data_offsets"})
    if (!fields.seen.contains(field)) refuse("expected a ", field, " for tensor ", fields.name, ", found none");
  SafetensorsEntry entry{.name = fields.name, .dtype = fields.dtype, .type = {}, .shape = {}, .begin = 0, .end = 0};
  for (const Type type : kReadTypes)
    if (fields.dtype == name_of(type)) entry.type = type;
  // Without empty axes, so that the strides of an empty tensor are numbers too.
  Index bytes = entry.type.has_value() ? bytes_of(*entry.type) : bytes_of_other(entry);
  bool empty = false;
  for (std::uint64_t size : fields.shape) {
    if (size > std::uint64_t(std::numeric_limits<Index>::max()) ||
        (size > 0 && __builtin_mul_overflow(bytes, Index(size), &bytes)))
      refuse("the shape of tensor ", fields.name, " is too large");
    empty = empty || size == 0;
    entry.shape.push_back(Index(size));
  }
  if (empty) bytes = 0;
  if (fields.offsets.size() != 2) refuse("expected two data_offsets for tensor ", fields.name, ", got ", fields.offsets.size());
  entry.begin = fields.offsets[0];
  entry.end = fields.offsets[1];
  if (entry.begin > entry.end)
    refuse("expected data_offsets in order for tensor ", fields.name, ", got ", entry.begin, " and ", entry.end);
  if (entry.end - entry.begin != std::uint64_t(bytes))
    refuse("expected ", bytes, " bytes for tensor ", fields.name, ", got ", entry.end - entry.begin);
  return entry;
}

/// Receives the JSON piece by piece: no tree of a hostile header is ever built, and a name that comes twice is noticed.
class Reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  std::vector<SafetensorsEntry> entries;
  Metadata metadata;

  bool start_object(std::size_t) {
    if (depth_ == 2 || list_ != nullptr) unexpected("an object");
    ++depth_;
    return true;
  }
  bool key(string_t& name) {
    if (name.size() > kLongestTensorName)
      refuse("expected names of at most ", kLongestTensorName, " bytes, got one of ", name.size());
    if (depth_ == 1) {
      if (!names_.insert(name).second) refuse("tensor ", name, " is there twice");
      metadata_ = name == "__metadata__";
      fields_ = {};
      fields_.name = name;
    } else {
      if (!fields_.seen.insert(name).second) refuse("field ", name, " of ", fields_.name, " is there twice");
      if (!metadata_ && name != "dtype" && name != "shape" && name != "data_offsets")
        refuse("expected dtype, shape or data_offsets for tensor ", fields_.name, ", got ", name);
    }
    field_ = name;
    return true;
  }
  bool end_object() {
    if (--depth_ == 1 && !metadata_) entries.push_back(checked(fields_));
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ != 2 || metadata_ || list_ != nullptr || field_ == "dtype") unexpected("an array");
    list_ = field_ == "shape" ? &fields_.shape : &fields_.offsets;
    return true;
  }
  bool end_array() {
    list_ = nullptr;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) {
    if (list_ == nullptr) unexpected("a number");
    if (list_->size() == kLargestRank)
      refuse("expected at most ", kLargestRank, " numbers in ", field_, " of tensor ", fields_.name);
    list_->push_back(value);
    return true;
  }
  bool string(string_t& text) {
    if (depth_ != 2 || list_ != nullptr || (!metadata_ && field_ != "dtype")) unexpected("a text");
    if (metadata_)
      metadata.emplace(field_, text);
    else
      fields_.dtype = text.substr(0, kLongestTensorName);
    return true;
  }
  bool number_integer(number_integer_t) { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) { unexpected("a number that is not whole"); }
  bool boolean(bool) { unexpected("true or false"); }
  bool null() { unexpected("null"); }
  bool binary(binary_t&) { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    refuse("the header is not JSON, from byte ", position);
  }

 private:
  [[noreturn]] void unexpected(const char* what) const {
    if (depth_ == 0) refuse("expected an object as header, got ", what);
    if (depth_ == 1) refuse("expected an object for ", fields_.name, ", got ", what);
    refuse("expected no such thing as ", what, " in ", field_, " of ", fields_.name);
  }

  int depth_ = 0;
  bool metadata_ = false;
  std::string field_;
  Fields fields_;
  std::vector<std::uint64_t>* list_ = nullptr;
  std::set<std::string> names_;
};

void check_layout(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t filled = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.end > data_bytes)
      refuse("tensor ", entry.name, " ends at byte ", entry.end, " of ", data_bytes, "; is the file truncated?");
    if (entry.begin < filled) refuse("tensor ", entry.name, " overlaps another");
    if (entry.begin > filled) refuse("there is a gap of ", entry.begin - filled, " bytes before tensor ", entry.name);
    filled = entry.end;
  }
  if (filled != data_bytes) refuse("there are ", data_bytes - filled, " bytes behind the last tensor");
}
}  // namespace

std::uint64_t safetensors_header_length(const std::array<std::uint8_t, 8>& prefix, std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) length = length << 8 | prefix[i];
  const std::uint64_t left = file_bytes - prefix.size();
  if (length > left) refuse("expected a header of ", length, " bytes, got a file with ", left, " left");
  if (length > kLongestHeader) refuse("expected a header of at most ", kLongestHeader, " bytes, got ", length);
  return length;
}

Type expect_type(const SafetensorsEntry& entry) {
  if (!entry.type.has_value()) refuse_type(entry);
  return *entry.type;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text) {
  const nlohmann::json index = nlohmann::json::parse(text, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    refuse("expected an index in JSON with an object weight_map, found none");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (name.size() > kLongestTensorName)
      refuse("expected names of at most ", kLongestTensorName, " bytes, got one of ", name.size());
    if (!file.is_string()) refuse("expected the name of a file for tensor ", name, ", got ", file.type_name());
    const auto& shard = file.get_ref<const std::string&>();
    // A set lies in one folder: nothing else of the machine is opened because a file says so.
    if (shard.size() > kLongestTensorName || shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos ||
        !shard.ends_with(".safetensors") || shard.starts_with('.'))
      refuse("expected a file NAME.safetensors beside the index for tensor ", name, ", got ",
             shard.substr(0, kLongestTensorName));
    files.emplace(name, shard);
  }
  return files;
}

SafetensorsHeader parse_safetensors_header(std::string_view header, std::uint64_t data_bytes) {
  Reader reader;
  nlohmann::json::sax_parse(header, &reader);
  auto& entries = reader.entries;
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(entries, data_bytes);
  return {std::move(entries), std::move(reader.metadata)};
}

std::string safetensors_header(const std::vector<const Tensors::value_type*>& order, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  Index begin = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    const Index end = begin + tensor.size() * bytes_of(tensor.type());
    header[name] = {{"dtype", name_of(tensor.type())}, {"shape", tensor.shape()}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  try {
    std::string text = header.dump();
    text.resize(std::size_t(round_up(Index(text.size()), 8)), ' ');
    return text;
  } catch (const nlohmann::json::type_error&) {
    refuse("expected names in UTF-8");
  }
}

}  // namespace isomer
