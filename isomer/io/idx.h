#pragma once
// Arrays of bytes in the IDX format, in which MNIST and its successors come.
#include <filesystem>
#include <span>
#include <vector>

#include "isomer/base/index.h"

namespace isomer {

struct IdxArray {
  std::vector<Index> shape;
  std::vector<unsigned char> data;  // the last axis runs fastest
};

/// Throws Error for anything but one whole array of unsigned bytes.
[[nodiscard]] IdxArray parse_idx(std::span<const unsigned char> bytes);
/// The same of a file, which gzip may have packed.
[[nodiscard]] IdxArray read_idx(const std::filesystem::path& path);

}  // namespace isomer
