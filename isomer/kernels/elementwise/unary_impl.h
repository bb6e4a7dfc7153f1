#pragma once
// unary.h over Vec; include vec_<isa>.h first.
#include "isomer/kernels/elementwise/functions_impl.h"
#include "isomer/kernels/elementwise/lane_impl.h"
#include "isomer/kernels/elementwise/unary_kernels.h"

namespace isomer {

namespace internal {

/// g(the function of that name); G is a lambda of the kernels of one instruction set.
template <class G>
ISOMER_INLINE void with_function(Unary f, G g) {
  switch (f) {
    case Unary::identity: return g(Identity());
    case Unary::affine: return g(Affine());
    case Unary::exp: return g(Exp());
    case Unary::log: return g(Log());
    case Unary::sigmoid: return g(Sigmoid());
    case Unary::log_sigmoid: return g(LogSigmoid());
    case Unary::silu: return g(Silu());
    case Unary::tanh: return g(Tanh());
    case Unary::softplus: return g(Softplus());
    case Unary::relu: return g(Relu());
    case Unary::leaky_relu: return g(LeakyRelu());
    case Unary::elu_plus_one: return g(EluPlusOne());
    case Unary::gelu: return g(Gelu());
    case Unary::softcap: return g(Softcap());
    case Unary::one_minus_exp: return g(OneMinusExp());
    case Unary::sqrt_one_minus_exp2: return g(SqrtOneMinusExp2());
    case Unary::square: return g(Square());
    case Unary::sqrt: return g(Sqrt());
    case Unary::reciprocal: return g(Reciprocal());
    case Unary::sin: return g(Sin());
    case Unary::cos: return g(Cos());
    case Unary::max_with: return g(MaxWith());
    case Unary::min_with: return g(MinWith());
    case Unary::gelu_erf: return g(GeluErf());
  }
}

template <class V, class T>
ISOMER_INLINE Parameters<V> parameters_of(UnaryOptions options) {
  return {V::set(T(options.a)), V::set(T(options.b))};
}

/// use(value and slope, row, column, columns left) for every vector of x.
template <class T, Isa I, class F>
ISOMER_INLINE void each_vector(const UnaryJob& job, Extent extent, Cells<const T> x, F use) {
  using V = simd::Vec<T, I>;
  const auto p = parameters_of<V, T>(job.options);
  with_function(job.f, [&](auto f) {
    for (Index r = 0; r < extent.rows; ++r) {
      const Lane<T, I> in(x, r);
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        use(f.at(in.load(c, left), p), r, c, left);
      }
    }
  });
}

}  // namespace internal

template <class T, Isa I>
void UnaryKernels<T, I>::forward(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<T> y) noexcept {
  internal::each_vector<T, I>(job, extent, x,
                              [&](auto at, Index r, Index c, Index left) { at.value.store(y.data + r * y.row + c, left); });
}

template <class T, Isa I>
void UnaryKernels<T, I>::with_slope(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<T> y, Cells<T> slope) noexcept {
  internal::each_vector<T, I>(job, extent, x, [&](auto at, Index r, Index c, Index left) {
    at.value.store(y.data + r * y.row + c, left);
    at.slope.store(slope.data + r * slope.row + c, left);
  });
}

template <class T, Isa I>
void UnaryKernels<T, I>::backward(const UnaryJob& job, Extent extent, Cells<const T> x, Cells<const T> dy, Cells<T> dx) noexcept {
  using V = simd::Vec<T, I>;
  const auto p = internal::parameters_of<V, T>(job.options);
  internal::with_function(job.f, [&](auto f) {
    for (Index r = 0; r < extent.rows; ++r) {
      const internal::Lane<T, I> in(x, r), up(dy, r);
      for (Index c = 0; c < extent.columns; c += V::lanes) {
        const Index left = extent.columns - c;
        const V slope = f.at(in.load(c, left), p).slope;
        internal::put(slope * up.load(c, left), job.accumulate, dx.data + r * dx.row + c, left);
      }
    }
  });
}

}  // namespace isomer
