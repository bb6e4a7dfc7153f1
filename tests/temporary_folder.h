#pragma once
// Where a test puts its files.
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace isomer::tests {

/// A new empty folder, gone at the end with all that is in it.
struct TemporaryFolder {
  const std::filesystem::path path = make();

  TemporaryFolder() = default;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

 private:
  static std::filesystem::path make() {
    std::string name = std::filesystem::temp_directory_path() / "isomer-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder " + name);
    return name;
  }
};

}  // namespace isomer::tests
