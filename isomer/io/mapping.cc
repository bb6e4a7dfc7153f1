#include "isomer/io/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "isomer/base/error.h"

namespace isomer {

namespace {
/// Why the last system call failed.
std::string reason() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe)
}  // namespace

Mapping::Mapping(std::filesystem::path path) : path_(std::move(path)) {
  // Not blocking, so that a pipe nobody writes to is refused instead of waited for.
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) refuse(reason());
  try {
    map();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
  ::close(file_);
}

void Mapping::refuse(const std::string& why) const { throw Error("cannot read " + path_.string() + ": " + why); }

void Mapping::expect_whole() const {
  struct stat info {};
  if (::fstat(file_, &info) != 0) refuse(reason());
  if (std::uint64_t(info.st_size) < size_)
    refuse("the file became shorter: expected " + std::to_string(size_) + " bytes, got " + std::to_string(info.st_size));
}

void Mapping::map() {
  struct stat info {};
  if (::fstat(file_, &info) != 0) refuse(reason());
  if (!S_ISREG(info.st_mode)) refuse("expected a regular file");
  size_ = std::size_t(info.st_size);
  if (size_ == 0) return;
  // What is written, as training does with weights that stay where they are, is this process' own and never reaches the file.
  void* data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_, 0);
  if (data == MAP_FAILED) refuse(reason());
  data_ = data;
  // What is not in memory yet is read in large pages, where the kernel has them for files: weights that are read there for every
  // token miss the TLB less often. A wish, which may fail.
  ::madvise(data_, size_, MADV_HUGEPAGE);
}

}  // namespace isomer
