#pragma once
// For the entry points of the laws: a view that is there has the shape it should.
#include <array>
#include <string>
#include <type_traits>

#include "isomer/base/error.h"
#include "isomer/base/tensor.h"
#include "isomer/base/view.h"

namespace isomer {

template <class T, int R>
void require_shape(const char* op, const std::string& name, const View<T, R>& x,
                   const std::type_identity_t<std::array<Index, R>>& shape) {
  if (!x.present() || x.shape == shape) return;
  fail(op, "expected ", name, " of shape ", text_of({shape.begin(), shape.end()}), ", got ",
       text_of({x.shape.begin(), x.shape.end()}));
}

}  // namespace isomer
