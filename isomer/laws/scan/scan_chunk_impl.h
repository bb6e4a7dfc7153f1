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

/// Columns that are worked on together: some full vectors of channels, or one that may have a tail. streamed: what is written
/// goes past the caches. Known to the compiler, so that the loop over tokens has no other way through.
template <int n, bool past>
struct Columns {
  static_assert(n > 1 || !past, "a tail may end inside of a line");
  static constexpr int vectors = n;
  static constexpr bool streamed = past;
};
template <class T, Isa I, class K>
ISOMER_INLINE void leave_row(const simd::Vec<T, I>& value, const Rows<T>& rows, Index t, Index c, Index left) {
  if constexpr (!K::streamed)
    store_if<T, I>(value, rows, t, c, left);
  else if (rows.data != nullptr)
    value.stream(row<T, I>(rows, t, c));
}

/// Channels from vector i of some columns on. Of several vectors each is full, and the compiler knows: behind a test for a tail,
/// loads waited for memory twice as long.
template <class T, Isa I, int vectors>
ISOMER_INLINE Index left_of(Index width, int i) {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  return vectors > 1 ? lanes : width - i * lanes;
}

/// Channels c … c + width − 1, `vectors` full vectors of them, or at most one.
template <class T, Isa I, bool complex, class K>
void forward_columns(const Tokens<T>& x, const State<const T>& from, const State<T>& to, const ForwardRows<T>& out, Index c,
                     Index width) noexcept {
  constexpr int vectors = K::vectors;
  using V = simd::Vec<T, I>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return left_of<T, I, vectors>(width, i); };
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
        leave_row<T, I, K>(s[i].imag, out.h_imag, t, at(i), left(i));
      } else {
        s[i].real = fma(f.real, s[i].real, in);
      }
      leave_row<T, I, K>(s[i].real, out.h, t, at(i), left(i));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i) {
    s[i].real.store(to.real + at(i), left(i));
    if (complex) s[i].imag.store(to.imag + at(i), left(i));
  }
}

/// f(c, width, columns) over all channels: four vectors at a time while there are as many, then one, which may have a tail.
template <class T, Isa I, class F>
ISOMER_INLINE void each_columns(Index width, bool streamed, F f) {
  constexpr Index lanes = simd::Vec<T, I>::lanes;
  Index c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes)
    if (streamed)
      f(c, 4 * lanes, Columns<4, true>());
    else
      f(c, 4 * lanes, Columns<4, false>());
  for (; c < width; c += lanes) f(c, width - c, Columns<1, false>());
  if (streamed) simd::Vec<T, I>::drain();
}

template <class T, Isa I>
void Kernels<T, I>::forward(const Tokens<T>& x, const State<const T>& from, const State<T>& to,
                            const ForwardRows<T>& out) noexcept {
  each_columns<T, I>(x.width, out.streamed, [&]<class K>(Index c, Index width, K) {
    if (from.imag == nullptr)
      forward_columns<T, I, false, K>(x, from, to, out, c, width);
    else
      forward_columns<T, I, true, K>(x, from, to, out, c, width);
  });
}

/// The decay of a token and what it keeps of the state, as rows of kColumns. Those of a token lie together: apart by a power of
/// two they would push each other out of L1.
template <class T, Isa I, bool complex>
struct Kept {
  Factor<T, I> decay, state;

  static ISOMER_INLINE Index place(Index t, int i) { return t * (complex ? 4 : 2) * kColumns + i * simd::Vec<T, I>::lanes; }
  static ISOMER_INLINE Kept load(const T* p) {
    using V = simd::Vec<T, I>;
    return {{V::load(p), complex ? V::load(p + 2 * kColumns) : V::zero()},
            {V::load(p + kColumns), complex ? V::load(p + 3 * kColumns) : V::zero()}};
  }
  ISOMER_INLINE void store(T* p) const {
    decay.real.store(p);
    state.real.store(p + kColumns);
    if (complex) decay.imag.store(p + 2 * kColumns);
    if (complex) state.imag.store(p + 3 * kColumns);
  }
};

template <class T, Isa I, bool complex, int vectors>
void recompute_columns(const Tokens<T>& x, const State<const T>& before, T* out, Index c, Index width) noexcept {
  using V = simd::Vec<T, I>;
  using Keep = Kept<T, I, complex>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return left_of<T, I, vectors>(width, i); };
  Factor<T, I> s[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i)
    s[i] = {V::load(before.real + at(i), left(i)), complex ? V::load(before.imag + at(i), left(i)) : V::zero()};
  for (Index t = 0; t < x.count; ++t) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const Factor<T, I> f = factor<T, I, complex>(x, t, at(i), left(i));
      const V in = V::load(row<const T, I>(x.x, t, at(i)), left(i));
      if constexpr (complex) {
        const Factor<T, I> kept = product(f, s[i]);
        Keep{f, kept}.store(out + Keep::place(t, i));
        s[i] = {kept.real + in, kept.imag + load_or_zero<T, I>(x.x_imag, t, at(i), left(i))};
      } else {
        const V kept = f.real * s[i].real;
        Keep{f, {kept, V::zero()}}.store(out + Keep::place(t, i));
        s[i].real = kept + in;
      }
    }
  }
}

template <class T, Isa I, bool complex, class K>
void backward_columns(const Tokens<T>& x, const State<T>& back, const BackwardRows<T>& outside, const T* in, Index c,
                      Index width) noexcept {
  constexpr int vectors = K::vectors;
  using V = simd::Vec<T, I>;
  using Keep = Kept<T, I, complex>;
  const auto at = [&](int i) { return c + i * V::lanes; };
  const auto left = [&](int i) { return left_of<T, I, vectors>(width, i); };
  // A local: stores of vectors may alias what is read through a reference.
  const BackwardRows<T> io = outside;
  Factor<T, I> g[vectors];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; ++i)
    g[i] = {V::load(back.real + at(i), left(i)), complex ? V::load(back.imag + at(i), left(i)) : V::zero()};
  for (Index t = x.count; t-- > 0;) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      const auto [decay, kept] = Keep::load(in + Keep::place(t, i));
      g[i].real = g[i].real + load_or_zero<T, I>(io.grad_h, t, at(i), left(i));
      leave_row<T, I, K>(g[i].real, io.grad_x, t, at(i), left(i));
      if constexpr (complex) {
        g[i].imag = g[i].imag + load_or_zero<T, I>(io.grad_h_imag, t, at(i), left(i));
        leave_row<T, I, K>(g[i].imag, io.grad_x_imag, t, at(i), left(i));
        leave_row<T, I, K>(fma(g[i].real, kept.real, g[i].imag * kept.imag), io.grad_log_decay, t, at(i), left(i));
        leave_row<T, I, K>(fnma(g[i].real, kept.imag, g[i].imag * kept.real), io.grad_angle, t, at(i), left(i));
        g[i] = conjugate_product(decay, g[i]);
      } else {
        leave_row<T, I, K>(g[i].real * kept.real, io.grad_log_decay, t, at(i), left(i));
        g[i].real = g[i].real * decay.real;
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
  each_columns<T, I>(x.width, io.streamed, [&]<class K>(Index c, Index width, K) {
    if (back.imag == nullptr) {
      recompute_columns<T, I, false, K::vectors>(x, before, scratch, c, width);
      backward_columns<T, I, false, K>(x, back, io, scratch, c, width);
    } else {
      recompute_columns<T, I, true, K::vectors>(x, before, scratch, c, width);
      backward_columns<T, I, true, K>(x, back, io, scratch, c, width);
    }
  });
}

}  // namespace isomer::scan_detail
