#include "isomer/io/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
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

bool is_at(int file, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}
}  // namespace

std::optional<FileLock> FileLock::take(const std::string& path, Absent absent) {
  while (true) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (absent == Absent::make ? O_CREAT : 0), 0666);
    if (file < 0) throw Error("cannot write " + path + ": " + std::strerror(errno));
    FileLock lock(file);
    struct flock range = whole();
    // A file system without locks has no other holder that could be seen.
    if (::fcntl(file, F_OFD_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) return {};
    // Where the file was replaced since it was opened, this is a lock on one that nobody else will ever see.
    if (is_at(file, path)) return lock;
  }
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
