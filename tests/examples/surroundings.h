#pragma once
// What examples find around them: arrays, and a folder to write into.
#include <cstdint>
#include <filesystem>
#include <list>
#include <vector>

#include "isomer/base/view.h"
#include "tests/temporary_folder.h"

namespace isomer::examples {

/// Memory for views that are used once.
template <class T = float>
class Arrays {
 public:
  template <std::size_t R>
  View<T, int(R)> operator()(const Index (&shape)[R], T value = T(0.5)) {
    Index size = 1;
    for (const Index n : shape) size *= n;
    return contiguous(all_.emplace_back(std::size_t(size), value).data(), shape);
  }

 private:
  std::list<std::vector<T>> all_;
};

/// For as long as it lives, a new folder is the current one.
class InNewFolder {
 public:
  InNewFolder() { std::filesystem::current_path(folder_.path); }
  ~InNewFolder() { std::filesystem::current_path(before_); }
  InNewFolder(const InNewFolder&) = delete;
  InNewFolder& operator=(const InNewFolder&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  tests::TemporaryFolder folder_;
};

}  // namespace isomer::examples
