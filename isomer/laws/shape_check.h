#pragma once
// For the entry points of the laws: a view that is there has the shape it should.
#include <array>
#include <string_view>
#include <type_traits>

#include "isomer/base/error.h"
#include "isomer/base/tensor.h"
#include "isomer/base/view.h"

namespace isomer {

/// The name in two parts, e.g. "initial_", "state": it is put together only when it is printed.
template <class T, int R>
void require_shape(const char* op, std::string_view prefix, std::string_view name, const View<T, R>& x,
                   const std::type_identity_t<std::array<Index, R>>& shape) {
  if (!x.present() || x.shape == shape) return;
  fail(op, "expected ", prefix, name, " of shape ", text_of({shape.begin(), shape.end()}), ", got ",
       text_of({x.shape.begin(), x.shape.end()}));
}
template <class T, int R>
void require_shape(const char* op, std::string_view name, const View<T, R>& x,
                   const std::type_identity_t<std::array<Index, R>>& shape) {
  require_shape(op, "", name, x, shape);
}

}  // namespace isomer
