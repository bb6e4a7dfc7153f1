#pragma once
// Whole files as bytes.
#include <cstddef>
#include <filesystem>
#include <vector>

namespace isomer {

/// The bytes of a file, unpacked if it is gzip's. Throws Error when it cannot be read, is damaged, or has more than `most`.
[[nodiscard]] std::vector<unsigned char> read_bytes(const std::filesystem::path& path, std::size_t most);

}  // namespace isomer
