#include "isomer/io/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "isomer/base/error.h"

namespace isomer {

namespace {
[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& why) {
  throw Error("cannot read " + path.string() + ": " + why);
}

/// zlib puts a name before what it says: "<fd:3>: unexpected end of file".
std::string after_name(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

struct Close {
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};

std::unique_ptr<gzFile_s, Close> open_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse_file(path, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  struct stat about {};
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(descriptor);
    refuse_file(path, "not a regular file");
  }
  // zlib passes through what is not compressed.
  std::unique_ptr<gzFile_s, Close> file(::gzdopen(descriptor, "rb"));
  if (file == nullptr) {
    ::close(descriptor);
    throw std::bad_alloc();
  }
  return file;
}
}  // namespace

std::vector<unsigned char> read_bytes(const std::filesystem::path& path, std::size_t most) {
  const auto file = open_file(path);
  std::vector<unsigned char> bytes;
  constexpr std::size_t kStep = std::size_t{1} << 20;
  for (;;) {
    const std::size_t size = bytes.size();
    // One more than allowed is asked for, to see whether the file ends there.
    const std::size_t step = std::min(kStep, most - size + 1);
    bytes.resize(size + step);
    const int got = ::gzread(file.get(), bytes.data() + size, unsigned(step));
    int problem = Z_OK;
    const char* text = ::gzerror(file.get(), &problem);
    if (got < 0 || problem != Z_OK)
      refuse_file(path, problem == Z_ERRNO ? std::strerror(errno) : after_name(text));  // NOLINT(concurrency-mt-unsafe)
    bytes.resize(size + std::size_t(got));
    if (bytes.size() > most) refuse_file(path, "expected at most " + std::to_string(most) + " bytes, got more");
    if (std::size_t(got) < step) return bytes;
  }
}

}  // namespace isomer
