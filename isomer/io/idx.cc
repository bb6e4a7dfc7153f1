#include "isomer/io/idx.h"

#include "isomer/base/error.h"
#include "isomer/io/bytes.h"

namespace isomer {

namespace {
constexpr std::size_t kMostIdxAxes = 4;
constexpr unsigned char kUnsignedByte = 0x08;
// The largest of the family (EMNIST by class) has 0.55 GB.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
}  // namespace

IdxArray parse_idx(std::span<const unsigned char> bytes) {
  require(bytes.size() >= 4, "idx", "expected a header of 4 bytes, got a file of ", bytes.size());
  require(bytes[0] == 0 && bytes[1] == 0, "idx", "expected a file that starts with two zeros, got ", int(bytes[0]), " and ",
          int(bytes[1]));
  require(bytes[2] == kUnsignedByte, "idx", "expected unsigned bytes (type 8), got type ", int(bytes[2]));
  const std::size_t axes = bytes[3], header = 4 + 4 * axes;
  require(axes >= 1 && axes <= kMostIdxAxes, "idx", "expected 1 to ", kMostIdxAxes, " axes, got ", axes);
  require(bytes.size() >= header, "idx", "expected a header of ", header, " bytes, got a file of ", bytes.size());
  IdxArray array;
  const std::size_t left = bytes.size() - header;
  std::size_t size = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < 4; ++i) n = n << 8 | bytes[4 + 4 * axis + i];
    array.shape.push_back(Index(n));
    // Checked axis by axis, so that no product overflows.
    require(n == 0 || size <= left / n, "idx", "expected no more numbers than the ", left, " bytes behind the header");
    size *= n;
  }
  require(size == left, "idx", "expected ", size, " bytes behind the header, got ", left);
  array.data.assign(bytes.begin() + std::ptrdiff_t(header), bytes.end());
  return array;
}

IdxArray read_idx(const std::filesystem::path& path) {
  const std::vector<unsigned char> bytes = read_bytes(path, kMostBytes);
  try {
    return parse_idx(bytes);
  } catch (const Error& problem) {
    throw Error("cannot read " + path.string() + ": " + problem.what());
  }
}

}  // namespace isomer
