#include "isomer/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "isomer/base/error.h"

namespace isomer {

namespace {
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// The file behind links, so that the link stays and its target is replaced.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real == nullptr ? path : std::string(real.get());
}
}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(resolved(path_)) {
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) give_up();
    return;
  }
  open_temporary(folder_of(target_));
  if (exists) (void)::fchmod(file_, info.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::open_temporary(const std::string& folder) {
  // Numbers that other processes and earlier, killed ones may have used are skipped.
  for (int i = 0; i < 1000; ++i) {
    const std::string name = folder + "/.isomer-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
    file_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ >= 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) break;
  }
  give_up();
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    // Linux writes at most 2 GB a call.
    const ssize_t written = ::write(file_, next, std::min<std::size_t>(bytes, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up();
    next += written;
    bytes -= std::size_t(written);
  }
}

void AtomicFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) give_up();
  temporary_.clear();
  sync_folder(folder_of(target_));
}

bool AtomicFile::commit_new() {
  finish();
  if (temporary_.empty()) return false;
  // A second name is given to one of many that ask for it at once. The first one goes with the object.
  if (::link(temporary_.c_str(), target_.c_str()) != 0) {
    if (errno == EEXIST || ::access(target_.c_str(), F_OK) == 0) return false;
    // File systems without second names have no better way.
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) give_up();
    temporary_.clear();
  }
  sync_folder(folder_of(target_));
  return true;
}

void AtomicFile::finish() {
  // Pipes and devices have nothing to sync, and say so with EINVAL or EROFS.
  if (::fsync(file_) != 0 && !temporary_.empty()) give_up();
  close_file();
}

void AtomicFile::close_file() {
  const int result = ::close(file_);
  file_ = -1;
  if (result != 0) give_up();
}

void AtomicFile::give_up() const { throw Error("cannot write " + path_ + ": " + std::strerror(errno)); }

void sync_folder(const std::string& path) {
  // The files are whole by now. Some file systems cannot sync a folder, which is no reason to call them failed.
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)::fsync(folder);
  ::close(folder);
}

}  // namespace isomer
