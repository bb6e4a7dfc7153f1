#include "isomer/io/files.h"

#include <filesystem>

namespace isomer {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

bool is_folder(const std::string& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

std::string whole_path(const std::string& path) {
  std::error_code problem;
  const fs::path whole = fs::absolute(path, problem);
  return problem ? path : whole.lexically_normal().string();
}

}  // namespace isomer
