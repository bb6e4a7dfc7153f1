#pragma once
// The plain scan on a chunk of channels: time is the loop, a few vectors of channels stay in registers. For the translation units
// of one Isa; include vec_<isa>.h first.
#include <math.h>

#include "isomer/laws/scan/scan_chunk.h"
#include "isomer/simd/math.h"

namespace isomer::scan_detail {

/// Row t of rows that may be null, from channel c on.
template <class T, Isa I>
ISOMER_INLINE T* row(const Rows<T>& rows, Index t, Index c) {
  return rows.data + t * rows.stride + c;
}

/// Rows ahead that are asked for: neighbouring tokens are a page or so apart, which the hardware does not foresee.
inline constexpr Index kAhead = 8;

/// Vectors of a cache line.
template <class T, Isa I>
constexpr int lines() {
  return int(64 / (sizeof(T) * simd::Vec<T, I>::lanes));
}

/// Asks for the line of row t + kAhead (down: t − kAhead) that holds channel c, of every tensor.
template <class T, Isa I, bool down, class... R>
ISOMER_INLINE void ask(Index before, Index count, Index after, Index t, Index c, const R&... rows) {
  const Index next = down ? t - kAhead : t + kAhead;
  if (next < -before || next >= count + after) return;
  ((rows.data != nullptr ? __builtin_prefetch(rows.data + next * rows.stride + c) : void()), ...);
}

/// Sine and cosine of any angle: those beyond the vector functions go through the library, one by one.
template <class T, Isa I>
ISOMER_INLINE simd::SinCos<T, I> rotation(simd::Vec<T, I> angle) {
  using V = simd::Vec<T, I>;
  if (largest(abs(angle)) <= simd::internal::MathConstants<T>::kTrigMax) [[likely]]
    return sincos(angle);
  T x[V::lanes], y[V::lanes];
  angle.store(x);
  for (Index i = 0; i < V::lanes; ++i) {
    const double a = double(x[i]);
    x[i] = T(::sin(a));
    y[i] = T(::cos(a));
  }
  return {V::load(x), V::load(y)};
}

/// e^{log_decay + i·angle} of token t.
template <class T, Isa I>
struct Factor {
  simd::Vec<T, I> real, imag;
};
template <class T, Isa I, bool complex>
ISOMER_INLINE Factor<T, I> factor(const Tokens<T>& x, Index t, Index c, Index left) {
  using V = simd::Vec<T, I>;
  const V size = exp(V::load(row<const T, I>(x.log_decay, t, c), left));
  if (!complex || x.angle.data == nullptr) return {size, V::zero()};
  const auto [sine, cosine] = rotation(V::load(row<const T, I>(x.angle, t, c), left));
  return {size * cosine, size * sine};
}

/// a·b and conj(a)·b.
template <class T, Isa I>
ISOMER_INLINE Factor<T, I> product(const Factor<T, I>& a, const Factor<T, I>& b) {
  return {fnma(a.imag, b.imag, a.real * b.real), fma(a.imag, b.real, a.real * b.imag)};
}
template <class T, Isa I>
ISOMER_INLINE Factor<T, I> conjugate_product(const Factor<T, I>& a, const Factor<T, I>& b) {
  return {fma(a.imag, b.imag, a.real * b.real), fnma(a.imag, b.real, a.real * b.imag)};
}

/// Element c … of a row, or zeros when there is none.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> load_or_zero(const Rows<const T>& rows, Index t, Index c, Index left) {
  using V = simd::Vec<T, I>;
  return rows.data != nullptr ? V::load(row<const T, I>(rows, t, c), left) : V::zero();
}
template <class T, Isa I>
ISOMER_INLINE void store_if(const simd::Vec<T, I>& value, const Rows<T>& rows, Index t, Index c, Index left) {
  if (rows.data != nullptr) value.store(row<T, I>(rows, t, c), left);
}

/// Channels c … c + width − 1, at most `vectors` vectors of them.
template <class T, Isa I, bool complex, int vectors>
void forward_columns(const Tokens<T>& x, const State<const T>& from, const State<T>& to, const Rows<T>& h, const Rows<T>& h_imag,
                     Index c, Index width) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return width - i * V::lanes; };
  Factor<T, I> s[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i)
    s[i] = {V::load(from.real + at(i), left(i)), complex ? V::load(from.imag + at(i), left(i)) : V::zero()};
  for (Index t = 0; t < x.count; ++t) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const Factor<T, I> f = factor<T, I, complex>(x, t, at(i), left(i));
      const V in = V::load(row<const T, I>(x.x, t, at(i)), left(i));
      if constexpr (complex) {
        const V in_imag = load_or_zero<T, I>(x.x_imag, t, at(i), left(i));
        s[i] = {fnma(f.imag, s[i].imag, fma(f.real, s[i].real, in)), fma(f.imag, s[i].real, fma(f.real, s[i].imag, in_imag))};
        store_if<T, I>(s[i].imag, h_imag, t, at(i), left(i));
      } else {
        s[i].real = fma(f.real, s[i].real, in);
      }
      store_if<T, I>(s[i].real, h, t, at(i), left(i));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    s[i].real.store(to.real + at(i), left(i));
    if (complex) s[i].imag.store(to.imag + at(i), left(i));
  }
}

/// A number of vectors as a type.
template <int n>
struct Vectors {};

/// f(c, width, vectors) over all channels: four vectors at a time while there are as many, then one, which may have a tail.
template <class T, Isa I, class F>
ISOMER_INLINE void each_columns(Index width, F f) {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) f(c, 4 * lanes, Vectors<4>());
  for (; c < width; c += lanes) f(c, width - c, Vectors<1>());
}

template <class T, Isa I>
void Kernels<T, I>::forward(const Tokens<T>& x, const State<const T>& from, const State<T>& to, Rows<T> h,
                            Rows<T> h_imag) noexcept {
  each_columns<T, I>(x.width, [&]<int vectors>(Index c, Index width, Vectors<vectors>) {
    if (from.imag == nullptr)
      forward_columns<T, I, false, vectors>(x, from, to, h, h_imag, c, width);
    else
      forward_columns<T, I, true, vectors>(x, from, to, h, h_imag, c, width);
  });
}

/// Decays and what they keep of the state, token by token: rows of kColumns.
template <class T>
struct Kept {
  T *real, *imag, *kept_real, *kept_imag;
};

template <class T, Isa I, bool complex, int vectors>
void recompute_columns(const Tokens<T>& x, const State<const T>& before, const Kept<T>& out, Index c, Index width) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return width - i * V::lanes; };
  Factor<T, I> s[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i)
    s[i] = {V::load(before.real + at(i), left(i)), complex ? V::load(before.imag + at(i), left(i)) : V::zero()};
  for (Index t = 0; t < x.count; ++t) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const Index place = t * kColumns + i * V::lanes;
      const Factor<T, I> f = factor<T, I, complex>(x, t, at(i), left(i));
      const V in = V::load(row<const T, I>(x.x, t, at(i)), left(i));
      f.real.store(out.real + place);
      if constexpr (complex) {
        const Factor<T, I> kept = product(f, s[i]);
        f.imag.store(out.imag + place);
        kept.real.store(out.kept_real + place);
        kept.imag.store(out.kept_imag + place);
        s[i] = {kept.real + in, kept.imag + load_or_zero<T, I>(x.x_imag, t, at(i), left(i))};
      } else {
        const V kept = f.real * s[i].real;
        kept.store(out.kept_real + place);
        s[i].real = kept + in;
      }
    }
  }
}

template <class T, Isa I, bool complex, int vectors>
void backward_columns(const Tokens<T>& x, const State<T>& back, const BackwardRows<T>& io, const Kept<T>& in, Index c,
                      Index width) noexcept {
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return width - i * V::lanes; };
  Factor<T, I> g[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i)
    g[i] = {V::load(back.real + at(i), left(i)), complex ? V::load(back.imag + at(i), left(i)) : V::zero()};
  for (Index t = x.count; t-- > 0;) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i += lines<T, I>())
      ask<T, I, true>(x.before, x.count, x.after, t, at(i), io.grad_h, io.grad_x, io.grad_log_decay, io.grad_h_imag,
                      io.grad_x_imag, io.grad_angle);
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const Index place = t * kColumns + i * V::lanes;
      const V kept = V::load(in.kept_real + place);
      g[i].real = g[i].real + load_or_zero<T, I>(io.grad_h, t, at(i), left(i));
      store_if<T, I>(g[i].real, io.grad_x, t, at(i), left(i));
      if constexpr (complex) {
        const V kept_imag = V::load(in.kept_imag + place);
        g[i].imag = g[i].imag + load_or_zero<T, I>(io.grad_h_imag, t, at(i), left(i));
        store_if<T, I>(g[i].imag, io.grad_x_imag, t, at(i), left(i));
        store_if<T, I>(fma(g[i].real, kept, g[i].imag * kept_imag), io.grad_log_decay, t, at(i), left(i));
        store_if<T, I>(fnma(g[i].real, kept_imag, g[i].imag * kept), io.grad_angle, t, at(i), left(i));
        g[i] = conjugate_product({V::load(in.real + place), V::load(in.imag + place)}, g[i]);
      } else {
        store_if<T, I>(g[i].real * kept, io.grad_log_decay, t, at(i), left(i));
        g[i].real = g[i].real * V::load(in.real + place);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    g[i].real.store(back.real + at(i), left(i));
    if (complex) g[i].imag.store(back.imag + at(i), left(i));
  }
}

template <class T, Isa I>
void Kernels<T, I>::backward(const Tokens<T>& x, const State<const T>& before, const State<T>& back, const BackwardRows<T>& io,
                             T* scratch) noexcept {
  static_assert(4 * simd::Vec<T, I>::lanes <= kColumns);
  const Index size = kColumns * x.count;
  const Kept<T> kept{scratch, scratch + size, scratch + 2 * size, scratch + 3 * size};
  each_columns<T, I>(x.width, [&]<int vectors>(Index c, Index width, Vectors<vectors>) {
    if (back.imag == nullptr) {
      recompute_columns<T, I, false, vectors>(x, before, kept, c, width);
      backward_columns<T, I, false, vectors>(x, back, io, kept, c, width);
    } else {
      recompute_columns<T, I, true, vectors>(x, before, kept, c, width);
      backward_columns<T, I, true, vectors>(x, back, io, kept, c, width);
    }
  });
}

}  // namespace isomer::scan_detail
