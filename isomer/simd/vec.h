#pragma once
// One vector type for every instruction set. Vec<T, I> has `lanes` elements of T (float or double); kernels are written once
// over it. A translation unit for one Isa includes target.h, which defines Vec<T, kTarget>:
//
//   lanes                      elements of a vector
//   zero() set(x)              broadcast
//   load(p) load(p, n)         all lanes | the first n, the others 0; reads nothing beyond
//   store(p) store(p, n)       all lanes | the first n
//   stream(p), drain()         all lanes past the caches, p aligned to them | what others may see only after it
//   a + b, a - b, a * b, a / b, -a, fma(a, b, c) = a·b + c, fnma(a, b, c) = c − a·b, abs, sqrt
//   min, max                   the second operand when either is NaN
//   copysign(size, sign)
//   round_even(a), pow2(n)     nearest integer; 2^n for an integer-valued n in the normal range
//   low_bits_to_exponent(a)    the bits of a shifted into the exponent field: 2^n from 1.5·2^m + bias + n (m = mantissa bits)
//   add_exponent(a, b)         a·2^n from b = 1.5·2^m + n, as long as a and the result are normal
//   split_exponent(a, e)       a = result · 2^e, result in [√½, √2), for normal a > 0
//   a < b -> Mask, select(mask, yes, no)
//   sum(a), largest(a)         over the lanes
//   transpose(src, lds, dst, ldd)   a lanes × lanes block; transpose_side: a side × side block, side ≤ lanes
//   sum_rows(src, lds)         the vector of the sums of the rows of such a block
#include "isomer/base/cpu.h"
#include "isomer/base/index.h"

namespace isomer::simd {

template <class T, Isa I>
struct Vec;

}  // namespace isomer::simd
