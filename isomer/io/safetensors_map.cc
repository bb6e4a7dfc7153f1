#include "isomer/io/safetensors_map.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/io/bytes.h"
#include "isomer/io/mapping.h"
#include "isomer/io/safetensors_header.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kLongestIndex = 100'000'000;

/// A tensor in a mapping.
struct Mapped {
  std::shared_ptr<const Mapping> file;
  SafetensorsEntry entry;
  const std::byte* data = nullptr;
};

using All = std::map<std::string, Mapped, std::less<>>;

All open_one(const fs::path& path, Metadata& metadata) {
  const auto file = std::make_shared<const Mapping>(path);
  if (file->size() < 8) file->refuse("safetensors: expected at least 8 bytes, got " + std::to_string(file->size()));
  All all;
  try {
    std::array<std::uint8_t, 8> prefix{};
    std::memcpy(prefix.data(), file->data(), prefix.size());
    const std::uint64_t length = safetensors_header_length(prefix, file->size()), begin = prefix.size() + length;
    const std::string_view text(reinterpret_cast<const char*>(file->data()) + prefix.size(), length);
    SafetensorsHeader header = parse_safetensors_header(text, file->size() - begin);
    metadata.merge(header.metadata);
    for (SafetensorsEntry& entry : header.entries) {
      const std::byte* data = file->data() + begin + entry.begin;
      std::string name = entry.name;
      all.emplace(std::move(name), Mapped{file, std::move(entry), data});
    }
  } catch (const Error& problem) {
    file->refuse(problem.what());
  }
  return all;
}

All open_set(const fs::path& index, Metadata& metadata) {
  std::map<std::string, std::string> files;
  const std::vector<unsigned char> text = read_bytes(index, kLongestIndex);
  const auto refuse = [&](const std::string& why) { throw Error("cannot read " + index.string() + ": " + why); };
  try {
    files = parse_safetensors_index({reinterpret_cast<const char*>(text.data()), text.size()});
  } catch (const Error& problem) {
    refuse(problem.what());
  }
  std::map<std::string, All> shards;
  for (const auto& [name, file] : files)
    if (!shards.contains(file)) shards.emplace(file, open_one(index.parent_path() / file, metadata));
  All all;
  for (const auto& [name, file] : files) {
    auto found = shards.at(file).extract(name);
    if (found.empty()) {
      const auto other =
          std::ranges::find_if(shards, [&, &name = name](const auto& shard) { return shard.second.contains(name); });
      refuse("expected tensor " + name + " in " + file + ", found " + (other == shards.end() ? "none" : "it in " + other->first));
    }
    all.insert(std::move(found));
  }
  return all;
}

All open_any(const fs::path& path, Metadata& metadata) {
  std::error_code none;
  if (fs::is_directory(path, none)) {
    if (fs::exists(path / kIndex, none)) return open_set(path / kIndex, metadata);
    if (fs::exists(path / kFile, none)) return open_one(path / kFile, metadata);
    throw Error("cannot read " + path.string() + ": expected " + kFile + " or " + kIndex + " in it, found neither");
  }
  return path.extension() == ".json" ? open_set(path, metadata) : open_one(path, metadata);
}
}  // namespace

struct MappedSafetensors::Shared {
  All all;
  Metadata metadata;
  std::mutex mutex;
  std::map<std::string, Tensor, std::less<>> aligned;  // copies of those that are not so in their files

  [[nodiscard]] const Mapped& find(std::string_view name) const {
    const auto found = all.find(name);
    if (found != all.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [other, tensor] : all) names.push_back(other);
    fail("safetensors", "there is no tensor ", name, did_you_mean(name, names));
  }

  [[nodiscard]] TensorView view(const Mapped& tensor) {
    const auto& entry = tensor.entry;
    tensor.file->expect_whole();
    try {
      const Type type = expect_type(entry);
      if (std::uintptr_t(tensor.data) % std::uintptr_t(bytes_of(type)) == 0) return dense_view(type, tensor.data, entry.shape);
      const std::lock_guard lock(mutex);
      const auto [found, made] = aligned.try_emplace(entry.name);
      if (made) {
        found->second = Tensor(type, entry.shape);
        std::memcpy(found->second.bytes(), tensor.data, entry.end - entry.begin);
      }
      return view_of(found->second);
    } catch (const Error& problem) {
      tensor.file->refuse(problem.what());
    }
  }
};

MappedSafetensors::MappedSafetensors(const fs::path& path) : shared_(std::make_shared<Shared>()) {
  shared_->all = open_any(path, shared_->metadata);
}

std::vector<std::string> MappedSafetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : shared_->all) names.push_back(name);
  return names;
}

bool MappedSafetensors::contains(std::string_view name) const { return shared_->all.contains(name); }

TensorView MappedSafetensors::view(std::string_view name) const { return shared_->view(shared_->find(name)); }

Tensor MappedSafetensors::read(std::string_view name) const { return read(name, view(name).type); }

Tensor MappedSafetensors::read(std::string_view name, Type type) const {
  const TensorView from = view(name);
  require(floating(from.type) == floating(type), "safetensors", "expected tensor ", name, " as ", name_of(type), ", got ",
          name_of(from.type));
  Tensor to(type, from.dims());
  copy_numbers(from, mutable_view_of(to));
  return to;
}

TensorViews MappedSafetensors::views() const {
  TensorViews views;
  for (const auto& [name, tensor] : shared_->all)
    if (tensor.entry.type.has_value()) views.emplace(name, shared_->view(tensor));
  return views;
}

const Metadata& MappedSafetensors::metadata() const { return shared_->metadata; }

std::uint64_t MappedSafetensors::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : shared_->all) bytes += tensor.entry.end - tensor.entry.begin;
  return bytes;
}

}  // namespace isomer
