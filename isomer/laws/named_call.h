#pragma once
// The tensors of a Call by name, as the views that a law's typed functions take. A name that is not there is an absent view.
//
//   NamedCall<T> x{call, sizes};
//   law<T>({.q = x.input("q"), .decay = x.input("log_decay")}, …, {.o = x.output("o", "B T H V")}, call.context);
#include <cstdint>
#include <span>
#include <sstream>
#include <string>

#include "isomer/laws/law.h"

namespace isomer {

template <class T>
struct NamedCall {
  const Call& call;
  const Sizes& sizes;
  Tensors out = {};

  /// A tensor, or none, that becomes a view of the rank that is asked for.
  template <class U>
  struct Named {
    const Tensor* tensor;
    template <int R>
    operator View<U, R>() const {  // NOLINT(google-explicit-constructor): the point of it
      return tensor != nullptr ? tensor->view<U, R>() : View<U, R>{};
    }
  };

  [[nodiscard]] bool given(const std::string& name) const { return call.inputs.contains(name); }
  [[nodiscard]] Named<const T> input(const std::string& name) const { return {given(name) ? &call.inputs.at(name) : nullptr}; }
  [[nodiscard]] std::span<const std::int64_t> offsets() const {
    if (!given("offsets")) return {};
    const Tensor& x = call.inputs.at("offsets");
    return {x.data<std::int64_t>(), std::size_t(x.size())};
  }
  /// A new output; `dims` names its axes, e.g. "B T H V".
  Named<T> output(const std::string& name, const std::string& dims) {
    std::vector<Index> shape;
    std::istringstream letters(dims);
    for (std::string letter; letters >> letter;) shape.push_back(sizes.at(letter));
    return {&(out[name] = Tensor(type_of<T>, std::move(shape)))};
  }
  /// A new output grad_X shaped like the input X, none without X.
  Named<T> like(const std::string& name) {
    if (!given(name)) return {nullptr};
    return {&(out["grad_" + name] = Tensor(type_of<T>, call.inputs.at(name).shape()))};
  }
};

}  // namespace isomer
