#include "isomer/io/file_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "isomer/base/error.h"

namespace isomer {

namespace {
/// The whole file.
struct flock whole() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}
}  // namespace

std::optional<FileLock> FileLock::take(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw Error("cannot write " + path + ": " + std::strerror(errno));
  FileLock lock(file);
  struct flock range = whole();
  // A file system without locks has no other holder that could be seen.
  if (::fcntl(file, F_OFD_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) return {};
  return lock;
}

bool FileLock::is_held(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct flock range = whole();
  const bool answered = ::fcntl(file, F_OFD_GETLK, &range) == 0;
  ::close(file);
  return answered && range.l_type != F_UNLCK;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace isomer
