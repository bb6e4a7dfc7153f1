#pragma once
// A file that stays open, mapped into memory for this process alone: a page that is written to becomes its own copy. Used by the
// readers of mapped files (safetensors_map.cc, gguf.cc).
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace isomer {

class Mapping {
 public:
  /// Throws Error "cannot read PATH: why" for what is not a regular file that may be read.
  explicit Mapping(std::filesystem::path path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data(), size_}; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Throws Error "cannot read PATH: why".
  [[noreturn]] void refuse(const std::string& why) const;
  /// Throws Error when the file became shorter: reading a page that it no longer has would end the program.
  void expect_whole() const;

 private:
  void map();

  std::filesystem::path path_;
  int file_ = -1;
  void* data_ = nullptr;  // none: the file is empty
  std::size_t size_ = 0;
};

}  // namespace isomer
