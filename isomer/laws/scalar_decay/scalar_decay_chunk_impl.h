#pragma once
// The chunk form, forward: see README.md for the derivation. For the translation units of one Isa; include vec_<isa>.h first.
#include <cmath>
#include <limits>

#include "isomer/kernels/gemm/tile_impl.h"
#include "isomer/laws/chunk_rows_impl.h"
#include "isomer/laws/exact_sum.h"
#include "isomer/laws/scalar_decay/scalar_decay_chunk.h"
#include "isomer/simd/math.h"

namespace isomer::scalar_decay_detail {

using chunk::copy_row;
using chunk::dot;
using chunk::each_vector;
using chunk::Prefetch;
using chunk::scaled;

/// e^x is 0 in double below this: a decay that forgets everything, like −inf.
inline constexpr double kForgets = -750;
/// As long as no logarithm since the edge exceeds this, a decay between two tokens is the product of one to the edge and one from
/// it: e^±30 leaves 25 decimal orders of a float on either side.
inline constexpr double kFactors = 30;
/// And as long as no factor of an output over its divisor is below e^kSmallest: floats end at e^−87, with e^−103 the last digit.
template <class T>
inline constexpr double kSmallest = sizeof(T) == 4 ? -80 : -700;

/// e^x down to the smallest number of the type, as the recurrence has it: exp() is 0 below the normal range. Where all weights
/// are e^−80, what is a thousandth of the largest still counts.
template <class T, Isa I>
ISOMER_INLINE simd::Vec<T, I> exp_gradual(simd::Vec<T, I> x) {
  using V = simd::Vec<T, I>;
  const V y = exp(x), below = exp(x + V::set(T(32))) * V::set(T(1.2664165549094176e-14));
  return select(y < V::set(std::numeric_limits<T>::min()), below, y);
}

/// Logarithms of the gates from the stabiliser before the chunk, or 0.
template <class T, Isa I>
void scan_gates(const Tokens<T>& x, const Rule& rule, double max, const Gates<T>& g) noexcept {
  constexpr double inf = __builtin_inf();
  // The prefix sum of log_decay, and the largest column or `max`: both since all was last forgotten.
  ExactSum b{0, 0}, top{max, 0};
  Index begin = 0, factored = 0;
  bool forgotten = false;
  for (Index i = 0; i < x.C; ++i) {
    const double f = x.log_decay.data ? double(x.log_decay.data[i * x.log_decay.stride]) : 0.0;
    const double input = x.log_input.data ? double(x.log_input.data[i * x.log_input.stride]) : 0.0;
    b = add(b, f);
    ExactSum column = add(ExactSum{-b.value, -b.rest}, input);
    if (rule.stabilised ? top.value - column.value < kForgets : f < kForgets) {
      begin = i;
      forgotten = true;
      top = {-inf, 0};
      b = {0, 0};
      column = {input, 0};
    }
    if (column.value > top.value) top = column;
    g.column[i] = column.value;
    g.column_rest[i] = column.rest;
    g.row[i] = rule.stabilised ? -top.value : b.value;
    g.row_rest[i] = rule.stabilised ? -top.rest : b.rest;
    g.in[i] = forgotten ? -inf : rule.stabilised ? max - top.value : b.value;
    g.floor[i] = -(b.value + top.value);
    g.begin[i] = begin;
    // A row must not know what comes after it: from the first that does not factor, none does.
    if (factored == i && std::abs(column.value - max) <= kFactors && std::abs(g.in[i]) <= kFactors) ++factored;
  }
  *g.factored = factored;
  *g.max = rule.stabilised ? double(T(b.value + top.value)) : 0.0;
  for (Index j = 0; j < x.C; ++j) g.out[j] = j < begin ? -inf : ((g.column[j] + b.value) - *g.max) + (g.column_rest[j] + b.rest);
  const double kept = (rule.stabilised ? max + b.value : b.value) - *g.max;
  *g.carry = forgotten ? T(0) : T(::exp(kept));
}

template <class T, Isa I>
void exponentials(const Tokens<T>& x, const Rule& rule, double max, const Gates<T>& g) noexcept {
  using V = simd::Vec<T, I>;
  constexpr double largest = sizeof(T) == 4 ? 88 : 709;
  const Index factored = *g.factored;
  for (Index i = 0; i < x.C; ++i) {
    const double at = i < factored ? (g.column[i] - max) + g.column_rest[i] : 0.0;
    g.at_edge[i] = T(at);
    g.at_edge_lo[i] = T(at - double(g.at_edge[i]));
    g.from_state[i] = T(g.in[i]);
    g.from_state_lo[i] = i < factored ? T((g.in[i] - double(g.from_state[i])) + g.row_rest[i]) : T(0);
    g.to_state[i] = T(g.out[i] - at);
    if (rule.stabilised) g.one[i] = T(g.floor[i] < largest ? g.floor[i] : largest);
  }
  double lowest_row = __builtin_inf(), lowest_column = lowest_row;
  for (Index i = 0; i < x.C && factored < x.C; ++i) {
    g.row_hi[i] = T(g.row[i]);
    g.row_lo[i] = T((g.row[i] - double(g.row_hi[i])) + g.row_rest[i]);
    // What the factor has of the weight, the column has no more.
    const double column = i < factored ? max : g.column[i], rest = i < factored ? 0.0 : g.column_rest[i];
    g.column_hi[i] = T(column);
    g.column_lo[i] = T((column - double(g.column_hi[i])) + rest);
    lowest_row = g.row[i] < lowest_row ? g.row[i] : lowest_row;
    lowest_column = column < lowest_column ? column : lowest_column;
  }
  *g.gradual = lowest_row + lowest_column < kSmallest<T> ? 1 : 0;
  const auto exp_in_place = [&](T* p) {
    each_vector<V>(x.C, [&](Index i, Index n) { exp_gradual(V::load(p + i, n)).store(p + i, n); });
  };
  // e^(hi + lo)
  const auto exp_of_sum = [&](T* hi, const T* lo) {
    each_vector<V>(x.C, [&](Index i, Index n) {
      const V y = exp_gradual(V::load(hi + i, n));
      fma(y, V::load(lo + i, n), y).store(hi + i, n);
    });
  };
  exp_of_sum(g.from_state, g.from_state_lo);
  exp_of_sum(g.at_edge, g.at_edge_lo);
  exp_in_place(g.to_state);
  if (rule.stabilised) exp_in_place(g.one);
}

/// Weights of row i from its logits, in place; returns their sum. Logits of rows that factor are weights already. `gradual`: some
/// weights may lie below the normal range.
template <class T, Isa I, bool gradual>
T weigh_row(const Rule& rule, const Gates<T>& g, T* w, Index i) noexcept {
  using V = simd::Vec<T, I>;
  V total = V::zero();
  const Index end = i + 1;
  if (rule.gated && i >= *g.factored) {
    const Index begin = g.begin[i];
    for (Index j = 0; j < begin; ++j) w[j] = 0;
    const V hi = V::set(g.row_hi[i]), lo = V::set(g.row_lo[i]);
    const auto weight = [&](Index j, Index n) {
      const V a = (hi + V::load(g.column_hi + j, n)) + (lo + V::load(g.column_lo + j, n));
      return V::load(w + j, n) * (gradual ? exp_gradual(a) : exp(a));
    };
    Index j = begin;
    for (; j + V::lanes <= end; j += V::lanes) {
      const V y = weight(j, V::lanes);
      y.store(w + j);
      total = fma(y, V::load(g.at_edge + j), total);
    }
    // Lanes beyond the diagonal may overflow: they must not reach the sum.
    weight(j, end - j).store(w + j, end - j);
    total = fma(V::load(w + j, end - j), V::load(g.at_edge + j, end - j), total);
  } else if (rule.gated && rule.divides) {
    each_vector<V>(end, [&](Index j, Index n) { total = fma(V::load(w + j, n), V::load(g.at_edge + j, n), total); });
  } else if (rule.divides || rule.centred) {
    each_vector<V>(end, [&](Index j, Index n) { total = total + V::load(w + j, n); });
  } else {
    return 0;
  }
  return sum(total);
}

/// 1 / divisor of output i, from the sum of its weights over k (den).
template <class T>
ISOMER_INLINE T inverse_divisor(const Rule& rule, T den, T one) {
  if (!rule.stabilised) return T(1) / (den + T(rule.eps));
  const T size = den < 0 ? -den : den;
  return T(1) / ((size > one ? size : one) + T(rule.eps) * one);
}

template <class T, Isa I>
void Kernels<T, I>::load(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s) noexcept {
  using V = simd::Vec<T, I>;
  if (rule.gated) {
    const double max = rule.stabilised ? double(*before.max) : 0.0;
    scan_gates<T, I>(x, rule, max, s.gates);
    if (!rule.causal) *s.gates.factored = 0;
    exponentials<T, I>(x, rule, max, s.gates);
  } else {
    *s.gates.carry = T(1);
  }
  gemm::transpose<T, I>(x.C, x.K, x.k.data, x.k.stride, s.kt, s.kt_stride);
  T* values = s.sv + x.K * x.V;
  const Index factored = rule.gated ? *s.gates.factored : 0;
  for (Index i = 0; i < x.C; ++i) {
    const T* v = x.v.data + i * x.v.stride;
    if (i < factored)
      scaled<T, I>(s.gates.at_edge[i], v, values + i * x.V, x.V);
    else
      copy_row<T, I>(v, rule.centred ? before.value_mean : nullptr, values + i * x.V, x.V);
  }
  for (Index a = 0; a < x.K && rule.centred; ++a) {
    const V mean = V::set(before.key_mean[a]);
    T* row = s.kt + a * s.kt_stride;
    each_vector<V>(x.C, [&](Index j, Index n) { (V::load(row + j, n) - mean).store(row + j, n); });
  }
}

/// Weights of row i, the factor of its divisor, and its q made ready to meet the state.
template <class T, Isa I>
void prepare_row(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s, Index i) noexcept {
  using V = simd::Vec<T, I>;
  T *q = s.qw + i * s.qw_stride, *w = q + x.K;
  T den = 0;
  if (rule.causal && rule.gated && *s.gates.gradual)
    den = weigh_row<T, I, true>(rule, s.gates, w, i);
  else if (rule.causal)
    den = weigh_row<T, I, false>(rule, s.gates, w, i);
  if (rule.gated && rule.causal && i >= *s.gates.factored) scaled<T, I>(s.gates.from_state[i], q, q, x.K);
  if (rule.divides) {
    if (!x.empty) den += dot<T, I>(q, before.norm, x.K);
    s.inverse[i] = inverse_divisor(rule, den, rule.stabilised ? s.gates.one[i] : T(1));
  } else if (rule.centred) {
    const T n = T(rule.causal ? x.count + double(i + 1) : x.count);
    if (x.first) den += dot<T, I>(q, before.norm, x.K);
    s.inverse[i] = T(1) / n;
    s.shift[i] = T(1) - den / n;
    const V shift = V::set(s.shift[i]);
    each_vector<V>(rule.causal ? i + 1 : 0, [&](Index j, Index m) { (V::load(w + j, m) + shift).store(w + j, m); });
  }
  // Matrix products skip what lies beyond a tile (gemm::kTileRows) of the diagonal, but not what lies within.
  if (rule.causal) each_vector<V>(gemm::kTileRows, [&](Index j, Index m) { V::zero().store(w + i + 1 + j, m); });
}

template <class T, Isa I>
void Kernels<T, I>::read(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Scratch<T>& s, Rows<T> o,
                         const PrefetchList<T>& ahead) noexcept {
  const Index C = x.C, K = x.K;
  Prefetch<T, I> prefetch{ahead};
  const Index factored = rule.gated && rule.causal ? *s.gates.factored : 0;
  for (Index i = 0; i < C; ++i)
    scaled<T, I>(i < factored ? T(rule.scale) * s.gates.from_state[i] : T(rule.scale), x.q.data + i * x.q.stride,
                 s.qw + i * s.qw_stride, K);
  if (rule.causal)
    gemm::multiply<T, I>(gemm::BandOfC{-C, 0}, C, C, K, {s.qw, s.qw_stride, 1}, s.kt, s.kt_stride, s.qw + K, s.qw_stride,
                         gemm::Store::set, prefetch);
  for (Index i = 0; i < C; ++i) prepare_row<T, I>(x, rule, before, s, i);
  // [q, weights] · [state; v] in one matrix product; a state that is zero is left out.
  const Index skip = x.empty ? K : 0, depth = K - skip + (rule.causal ? C : 0);
  gemm::multiply<T, I>(gemm::BandOfA{-C, K - skip}, C, x.V, depth, {s.qw + skip, s.qw_stride, 1}, s.sv + skip * x.V, x.V, o.data,
                       o.stride, gemm::Store::set, prefetch);
  if (!rule.divides && !rule.centred) return;
  for (Index i = 0; i < C; ++i) {
    T* row = o.data + i * o.stride;
    scaled<T, I>(s.inverse[i], row, row, x.V);
    if (rule.centred) scaled<T, I, true>(T(1), before.value_mean, row, x.V);
    if (rule.centred && x.first) scaled<T, I, true>(s.inverse[i] * s.shift[i], before.value_sum, row, x.V);
  }
}

/// Sums of k and v about the means, with those that stood beside the state, and their factor 1/n.
template <class T, Isa I>
T centred_sums(const Tokens<T>& x, const Edge<T>& before, const Scratch<T>& s) noexcept {
  using V = simd::Vec<T, I>;
  const auto add_up = [&](Rows<const T> rows, const T* mean, const T* beside, T* sums, Index n) {
    each_vector<V>(n, [&](Index c, Index m) {
      const V centre = V::load(mean + c, m);
      V total = x.first ? V::load(beside + c, m) : V::zero();
      for (Index i = 0; i < x.C; ++i) total = total + (V::load(rows.data + i * rows.stride + c, m) - centre);
      total.store(sums + c, m);
    });
  };
  add_up(x.k, before.key_mean, before.norm, s.sums_k, x.K);
  add_up(x.v, before.value_mean, before.value_sum, s.sums_v, x.V);
  return T(1 / (x.count + double(x.C)));
}

/// Moves a state of sums about old means to means that are per · (sums_k, sums_v) away.
template <class T, Isa I>
void move_state(T per, const T* sums_k, const T* sums_v, Rows<T> state, Index K, Index V) noexcept {
  for (Index a = 0; a < K; ++a) scaled<T, I, true>(-per * sums_k[a], sums_v, state.data + a * state.stride, V);
}

/// Moves sums about the old means to the new means.
template <class T, Isa I>
void recentre(const Tokens<T>& x, const Edge<T>& before, const Edge<T>& after, const Scratch<T>& s, Write mode) noexcept {
  const T per = centred_sums<T, I>(x, before, s);
  move_state<T, I>(per, s.sums_k, s.sums_v, {after.state, x.V}, x.K, x.V);
  const auto clear = [&](const T* from, T* to, Index n) {
    for (Index a = 0; a < n; ++a) to[a] = mode == Write::set && x.first ? -from[a] : T(0);
  };
  clear(before.norm, after.norm, x.K);
  clear(before.value_sum, after.value_sum, x.V);
  if (mode == Write::set) return;
  scaled<T, I, true>(per, s.sums_k, after.key_mean, x.K);
  scaled<T, I, true>(per, s.sums_v, after.value_mean, x.V);
}

template <class T, Isa I>
void Kernels<T, I>::write(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Edge<T>& after, const Scratch<T>& s,
                          Write mode) noexcept {
  using V = simd::Vec<T, I>;
  const T carry = *s.gates.carry;
  const bool add = mode == Write::add && !x.empty;
  // Where all weights factor, what the chunk adds is seen from the edge before it and moves on with the state.
  const bool factored = rule.gated && *s.gates.factored == x.C;
  gemm::Into<T> into = add ? gemm::Store::add : gemm::Store::set;
  if (add && carry != T(1)) {
    each_vector<V>(x.K, [&](Index a, Index n) { V::set(carry).store(s.sums_k + a, n); });
    into = gemm::Into<T>(s.sums_k, T(factored));
  }
  for (Index a = 0; a < x.K && ((rule.gated && !factored) || rule.divides); ++a) {
    T* row = s.kt + a * s.kt_stride;
    V total = V::zero();
    each_vector<V>(x.C, [&](Index j, Index n) {
      V k = V::load(row + j, n);
      if (rule.gated && !factored) {
        k = k * V::load(s.gates.to_state + j, n);
        k.store(row + j, n);
      }
      total = rule.gated ? fma(k, V::load(s.gates.at_edge + j, n), total) : total + k;
    });
    if (rule.divides) after.norm[a] = (add ? carry * after.norm[a] : T(0)) + (factored ? carry * sum(total) : sum(total));
  }
  gemm::multiply<T, I>(gemm::Full{}, x.K, x.V, x.C, {s.kt, s.kt_stride, 1}, s.sv + x.K * x.V, x.V, after.state, x.V, into);
  if (factored && !add && carry != T(1)) scaled<T, I>(carry, after.state, after.state, x.K * x.V);
  if (mode == Write::add && rule.stabilised) *after.max = T(*s.gates.max);
  if (rule.centred) recentre<T, I>(x, before, after, s, mode);
}

template <class T, Isa I>
void Kernels<T, I>::trace(const Tokens<T>& x, const Rule& rule, const Edge<T>& before, const Edge<T>& after,
                          const Scratch<T>& s) noexcept {
  if (!rule.centred) return;
  const T per = centred_sums<T, I>(x, before, s);
  for (Index a = 0; a < x.K; ++a) after.key_mean[a] = before.key_mean[a] + per * s.sums_k[a];
  for (Index c = 0; c < x.V; ++c) after.value_mean[c] = before.value_mean[c] + per * s.sums_v[c];
}

template <class T, Isa I>
void Kernels<T, I>::keep(Index K, Index V, Columns columns, const Edge<T>& edge, const Edge<T>& to) noexcept {
  gemm::transpose<T, I>(K, columns.width, edge.state, columns.width, to.state + columns.begin * K, K);
  if (columns.begin == 0) copy_row<T, I>(edge.norm, nullptr, to.norm, edge_size(K, V) - K * V);
}

template <class T, Isa I>
void Kernels<T, I>::advance(T carry, const T* from, T* to, Index count) noexcept {
  scaled<T, I, true>(carry, from, to, count);
}

}  // namespace isomer::scalar_decay_detail
