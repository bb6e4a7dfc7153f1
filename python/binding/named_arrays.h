#pragma once
// Arrays by name: what calls from Python take and make.
#include <nanobind/stl/string.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "isomer/laws/law_view.h"
#include "python/binding/arrays.h"

namespace isomer::python {

/// Arrays by name as views, for as long as this lives; None stands for one that is absent.
class NamedArrays {
 public:
  explicit NamedArrays(const nb::dict& arrays) {
    for (const auto& [key, array] : arrays) {
      if (array.is_none()) continue;
      const std::string name = nb::cast<std::string>(key);
      views_.emplace(name, borrowed_.emplace_back(name, array).view());
    }
  }
  [[nodiscard]] const NamedViews& views() const { return views_; }

 private:
  std::list<Borrowed> borrowed_;
  NamedViews views_;
};

/// Makes outputs by `empty(shape, type)` and keeps them by name.
class Outputs {
 public:
  explicit Outputs(nb::handle empty) : empty_(empty) {}
  LawView operator()(const std::string& name, Type type, const std::vector<Index>& shape) {
    const nb::gil_scoped_acquire locked;
    Made output = make_array(empty_, type, shape);
    made_[name.c_str()] = output.array;
    return law_view(output.view);
  }
  [[nodiscard]] nb::dict take() { return std::move(made_); }

 private:
  nb::handle empty_;
  nb::dict made_;
};

/// What forward passes left, each under the address of an array of one byte that automatic differentiation keeps for us. When
/// that array goes, so does the object; whoever copied it finds none, and backward does without.
template <class Object>
class Tapes {
 public:
  static Tapes& all() {
    static Tapes tapes;
    return tapes;
  }
  [[nodiscard]] nb::object keep(std::shared_ptr<Object> object) {
    auto* place = new std::uint8_t(0);
    if (object != nullptr) {
      const std::lock_guard held(mutex_);
      kept_.emplace(place, std::move(object));
    }
    const nb::capsule owner(place, [](void* p) noexcept { all().drop(static_cast<std::uint8_t*>(p)); });
    const std::size_t one = 1;
    return nb::cast(nb::ndarray<nb::pytorch, std::uint8_t>(place, 1, &one, owner));
  }
  [[nodiscard]] std::shared_ptr<Object> find(std::uintptr_t address) {
    const std::lock_guard held(mutex_);
    const auto found = kept_.find(reinterpret_cast<std::uint8_t*>(address));
    return found == kept_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::size_t count() {
    const std::lock_guard held(mutex_);
    return kept_.size();
  }

 private:
  void drop(std::uint8_t* place) {
    std::shared_ptr<Object> last;
    {
      const std::lock_guard held(mutex_);
      if (const auto found = kept_.find(place); found != kept_.end()) last = std::move(found->second), kept_.erase(found);
    }
    delete place;
  }
  std::mutex mutex_;
  std::map<std::uint8_t*, std::shared_ptr<Object>> kept_;
};

}  // namespace isomer::python
