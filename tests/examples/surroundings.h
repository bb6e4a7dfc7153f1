#pragma once
// What examples find around them: arrays, a folder to write into, and what they print.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <list>
#include <sstream>
#include <string>
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

/// What is printed while it lives.
class Printed {
 public:
  ~Printed() { std::cout.rdbuf(before_); }
  Printed() = default;
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  [[nodiscard]] std::string text() const { return into_.str(); }

 private:
  std::ostringstream into_;
  std::streambuf* before_ = std::cout.rdbuf(into_.rdbuf());
};

}  // namespace isomer::examples
