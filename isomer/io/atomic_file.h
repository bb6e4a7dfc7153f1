#pragma once
// A file that appears whole or not at all: written under a temporary name in the same folder and renamed at the end.
//
//   AtomicFile file("out.safetensors");
//   file.write(data, bytes);
//   file.commit();  // without it, and on any Error, nothing is left behind
//
// A target that exists and is no regular file (a device, a pipe) is written in place, since it must not be replaced.
#include <cstddef>
#include <string>

namespace isomer {

class AtomicFile {
 public:
  /// Throws Error "cannot write PATH: reason", as the others do.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  /// Returns when the file is on the disk under its name.
  void commit();
  /// The same where there is no such file. False where there is one, whoever made it in the meantime: it stays.
  [[nodiscard]] bool commit_new();

 private:
  void open_temporary(const std::string& folder);
  void finish();
  void close_file();
  [[noreturn]] void give_up() const;

  std::string path_;       // as the caller named it
  std::string target_;     // what the name stands for
  std::string temporary_;  // empty when there is none to remove
  int file_ = -1;
};

/// Returns when the names of the files in a folder are on the disk, where the file system can promise it.
void sync_folder(const std::string& path);

}  // namespace isomer
