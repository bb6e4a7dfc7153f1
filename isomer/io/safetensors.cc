#include "isomer/io/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "isomer/base/error.h"
#include "isomer/io/atomic_file.h"
#include "isomer/io/safetensors_header.h"

namespace isomer {

namespace {
constexpr std::uint64_t kPrefix = 8;

/// Bytes from the front to the back, of a file or of memory.
class Source {
 public:
  explicit Source(std::uint64_t size) : left_(size) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// The caller has made sure that so many are left.
  void read(void* to, std::uint64_t bytes) {
    take(static_cast<char*>(to), bytes);
    left_ -= bytes;
  }

 private:
  virtual void take(char* to, std::uint64_t bytes) = 0;
  std::uint64_t left_;
};

class Memory final : public Source {
 public:
  explicit Memory(std::span<const std::byte> bytes) : Source(bytes.size()), next_(bytes.data()) {}

 private:
  void take(char* to, std::uint64_t bytes) override {
    if (bytes > 0) std::memcpy(to, next_, bytes);
    next_ += bytes;
  }
  const std::byte* next_;
};

class File final : public Source {
 public:
  File(int file, std::uint64_t size) : Source(size), file_(file) {}
  ~File() override { ::close(file_); }

 private:
  void take(char* to, std::uint64_t bytes) override {
    while (bytes > 0) {
      const ssize_t got = ::read(file_, to, std::min(bytes, std::uint64_t{1} << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(std::strerror(errno));
      if (got == 0) throw Error("the file became shorter while it was read");
      to += got;
      bytes -= std::uint64_t(got);
    }
  }
  int file_;
};

SafetensorsFile parse(Source& source) {
  require(source.left() >= kPrefix, "safetensors", "expected at least ", kPrefix, " bytes, got ", source.left());
  std::array<std::uint8_t, kPrefix> prefix{};
  source.read(prefix.data(), kPrefix);
  const std::uint64_t length = safetensors_header_length(prefix, kPrefix + source.left());
  std::string header(length, '\0');
  source.read(header.data(), length);
  SafetensorsHeader parsed = parse_safetensors_header(header, source.left());
  SafetensorsFile file{{}, std::move(parsed.metadata)};
  for (SafetensorsEntry& entry : parsed.entries) {
    Tensor tensor(expect_type(entry), std::move(entry.shape));
    source.read(tensor.bytes(), entry.end - entry.begin);
    file.tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  return file;
}
}  // namespace

Tensors parse_safetensors(std::span<const std::byte> file) {
  Memory source(file);
  return parse(source).tensors;
}

SafetensorsFile read_safetensors_file(const std::string& path) {
  // Not blocking, so that a pipe nobody writes to is refused instead of waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw Error("cannot read " + path + ": " + std::strerror(errno));
  struct stat info {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  File source(file, std::uint64_t(info.st_size));
  if (!regular) throw Error("cannot read " + path + ": expected a regular file");
  try {
    return parse(source);
  } catch (const Error& problem) {
    throw Error("cannot read " + path + ": " + problem.what());
  } catch (const std::bad_alloc&) {
    throw Error("cannot read " + path + ": it does not fit in memory");
  }
}

Tensors read_safetensors(const std::string& path) { return read_safetensors_file(path).tensors; }

void write_safetensors(const std::string& path, const Tensors& tensors, const Metadata& metadata) {
  std::vector<const Tensors::value_type*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  // Wide numbers first, so that each is aligned to its own size.
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return bytes_of(a->second.type()) > bytes_of(b->second.type()); });
  const std::string header = safetensors_header(order, metadata);
  std::array<std::uint8_t, kPrefix> prefix{};
  for (std::size_t i = 0; i < kPrefix; ++i) prefix[i] = std::uint8_t(header.size() >> (8 * i));
  AtomicFile file(path);
  file.write(prefix.data(), prefix.size());
  file.write(header.data(), header.size());
  for (const auto* entry : order)
    file.write(entry->second.bytes(), std::size_t(entry->second.size() * bytes_of(entry->second.type())));
  file.commit();
}

}  // namespace isomer
