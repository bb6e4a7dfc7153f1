#pragma once
// map for one instruction set; include vec_<isa>.h first.
#include "isomer/simd/exp2.h"
#include "isomer/simd/map.h"
#include "isomer/simd/math.h"

namespace isomer::simd {

template <class T, Isa I, class F>
void map_with(F f, const T* in, T* out, Index n) noexcept {
  using V = Vec<T, I>;
  for (Index i = 0; i < n; i += V::lanes) f(V::load(in + i, n - i)).store(out + i, n - i);
}

template <class T, Isa I>
void map(Function f, const T* in, T* out, Index n) noexcept {
  using V = Vec<T, I>;
  switch (f) {
    case Function::exp: return map_with<T, I>([](V x) { return exp(x); }, in, out, n);
    case Function::exp_nonpositive: return map_with<T, I>([](V x) { return exp_nonpositive(x); }, in, out, n);
    case Function::exp2_nonpositive: return map_with<T, I>([](V x) { return exp2_nonpositive(x); }, in, out, n);
    case Function::expm1: return map_with<T, I>([](V x) { return expm1(x); }, in, out, n);
    case Function::log: return map_with<T, I>([](V x) { return log(x); }, in, out, n);
    case Function::log1p: return map_with<T, I>([](V x) { return log1p(x); }, in, out, n);
    case Function::sigmoid: return map_with<T, I>([](V x) { return sigmoid(x); }, in, out, n);
    case Function::log_sigmoid: return map_with<T, I>([](V x) { return log_sigmoid(x); }, in, out, n);
    case Function::softplus: return map_with<T, I>([](V x) { return softplus(x); }, in, out, n);
    case Function::tanh: return map_with<T, I>([](V x) { return tanh(x); }, in, out, n);
    case Function::sin: return map_with<T, I>([](V x) { return sin(x); }, in, out, n);
    case Function::cos: return map_with<T, I>([](V x) { return cos(x); }, in, out, n);
    case Function::sqrt: return map_with<T, I>([](V x) { return sqrt(x); }, in, out, n);
    case Function::abs: return map_with<T, I>([](V x) { return abs(x); }, in, out, n);
    case Function::round_even: return map_with<T, I>([](V x) { return round_even(x); }, in, out, n);
    case Function::pow2: return map_with<T, I>([](V x) { return pow2(x); }, in, out, n);
  }
}

}  // namespace isomer::simd
