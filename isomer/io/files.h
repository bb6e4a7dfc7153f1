#pragma once
// What is at a path. A path that cannot be looked at (too long, below a file, without permission) has nothing there: who opens it
// says why, as an Error. The functions of std::filesystem throw what is none.
#include <string>

namespace isomer {

[[nodiscard]] bool is_there(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
/// From the root of the file system on, without dots; as it is where no folder is the current one.
[[nodiscard]] std::string whole_path(const std::string& path);

}  // namespace isomer
