#pragma once
// A lock on a file among processes. It ends with the process that holds it, however that ends, so none is ever left behind.
//
//   std::optional<FileLock> lock = FileLock::take("runs/a/recipe.toml");
//   if (!lock) throw Error("another holds it");
#include <optional>
#include <string>
#include <utility>

namespace isomer {

class FileLock {
 public:
  /// Nothing when another has it. Throws Error "cannot write PATH: reason" when the file cannot be opened for writing, as one
  /// that is not there, unless it is to be made.
  enum class Absent : bool { refuse, make };
  [[nodiscard]] static std::optional<FileLock> take(const std::string& path, Absent absent = Absent::refuse);
  /// Does anybody hold it? Asking does not take it.
  [[nodiscard]] static bool is_held(const std::string& path);

  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace isomer
