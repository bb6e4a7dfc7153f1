#pragma once
// An elementary function of every element of an array: out[i] = f(in[i]). The functions are those of math.h, and a few
// operations of Vec, so that both can be used and tested from code that knows no instruction set.
//
//   map(Function::exp, x.data(), y.data(), n, context.isa());
//
// in and out are dense and may be the same array. One thread; errors in ULP in docs/numerics.md.
#include <cstdint>

#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer::simd {

enum class Function : std::uint8_t {
  exp,
  exp_nonpositive,
  exp2_nonpositive,
  expm1,
  log,
  log1p,
  sigmoid,
  log_sigmoid,
  softplus,
  tanh,
  sin,
  cos,
  sqrt,
  abs,
  round_even,
  pow2
};

template <class T, Isa I>
void map(Function f, const T* in, T* out, Index n) noexcept;

template <class T>
void map(Function f, const T* in, T* out, Index n, Isa isa) {
  with_isa(isa, [&]<Isa I>() { map<T, I>(f, in, out, n); });
}

}  // namespace isomer::simd
