#include "isomer/nn/init.h"

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"

namespace isomer {

namespace {
using Kind = graph::Init::Kind;

/// The name whose random numbers a parameter is drawn from: its own, or that of the one beside it.
std::string stream_of(const std::string& name, const std::string& beside) {
  return beside.empty() ? name : name.substr(0, name.rfind('.') + 1) + beside;
}

double uniform(const graph::Init& init, Rng& rng) { return init.a + (init.b - init.a) * rng.uniform(); }

/// A radius such that points are uniform in the ring between a and b.
double radius(const graph::Init& init, Rng& rng) {
  return std::sqrt(init.a * init.a + (init.b * init.b - init.a * init.a) * rng.uniform());
}

/// A number that depends on nothing but chance.
double number(const graph::Init& init, Rng& rng) {
  switch (init.kind) {
    case Kind::normal: return init.a + init.b * rng.normal();
    case Kind::uniform: return uniform(init, rng);
    case Kind::log_uniform: return std::log(uniform(init, rng));
    case Kind::softplus_inverse: {
      const double y = init.a * std::pow(init.b / init.a, rng.uniform());
      return y + std::log(-std::expm1(-y));
    }
    case Kind::ring_root: {
      const double r = radius(init, rng);
      return 0.5 * std::log1p(-r * r);
    }
    case Kind::ring: return std::log(-std::log(radius(init, rng)));
    case Kind::gate_ring: {
      const double r = radius(init, rng);
      return std::log((1 - r) / r);
    }
    default: return init.a;
  }
}

/// Of `half` frequencies, the sine or behind all of them the cosine.
double sine(Index position, Index channel, Index half) {
  const double angle = double(position) * std::pow(1e4, -double(channel % half) / double(std::max<Index>(half - 1, 1)));
  return channel < half ? std::sin(angle) : std::cos(angle);
}

double dot(const double* a, const double* b, Index K) {
  double sum = 0;
  for (Index i = 0; i < K; ++i) sum += a[i] * b[i];
  return sum;
}

/// Rows of K numbers: K at a time stand upright on each other, and have length one.
void orthonormal(std::span<double> rows, Index K, Rng& rng) {
  const Index N = Index(rows.size()) / K;
  for (Index n = 0; n < N; ++n) {
    double* row = rows.data() + n * K;
    for (Index i = 0; i < K; ++i) row[i] = rng.normal();
    // Twice, since the first time leaves the rounding of nearly parallel rows.
    for (int pass = 0; pass < 2; ++pass)
      for (Index m = n - n % K; m < n; ++m) {
        const double* other = rows.data() + m * K;
        const double share = dot(row, other, K);
        for (Index i = 0; i < K; ++i) row[i] -= share * other[i];
      }
    const double length = std::sqrt(dot(row, row, K));
    for (Index i = 0; i < K; ++i) row[i] /= length;
  }
}

/// Such rows with the lengths of normal vectors.
void orthogonal(std::span<double> rows, Index K, Rng& rng) {
  orthonormal(rows, K, rng);
  for (std::size_t n = 0; n < rows.size(); n += std::size_t(K)) {
    double square = 0;
    for (Index i = 0; i < K; ++i) {
      const double x = rng.normal();
      square += x * x;
    }
    for (Index i = 0; i < K; ++i) rows[n + std::size_t(i)] *= std::sqrt(square);
  }
}

/// rows × columns with orthonormal rows, or columns if there are fewer of them, times the factor.
void semi_orthogonal(std::span<double> matrix, Index columns, double factor, Rng& rng) {
  const Index rows = Index(matrix.size()) / columns;
  std::vector<double> upright(matrix.size());
  orthonormal(upright, std::max(rows, columns), rng);
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c)
      matrix[std::size_t(r * columns + c)] = factor * upright[std::size_t(rows <= columns ? r * columns + c : c * rows + r)];
}

void listed(const graph::Init& init, std::span<const Index> shape, std::span<double> into) {
  const Index given = Index(init.values.size()), heads = shape.empty() ? 1 : shape[0];
  require(given == Index(into.size()) || given == heads, "init", "expected a list of ", into.size(), " numbers, or of ", heads,
          ", got ", given);
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = init.values[i / (into.size() / init.values.size())];
}
}  // namespace

std::vector<double> initial_values(const graph::Init& init, std::span<const Index> shape, Rng rng) {
  Index size = 1;
  for (const Index n : shape) size *= n;
  std::vector<double> x(std::size_t(size), 0.0);
  const Index columns = shape.empty() ? 1 : shape.back(), rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  const auto at = [&](Index i) -> double& { return x[std::size_t(i)]; };
  switch (init.kind) {
    case Kind::linspace:
      for (Index i = 0; i < size; ++i) at(i) = size == 1 ? init.a : init.a + (init.b - init.a) * double(i) / double(size - 1);
      break;
    case Kind::log_range:
      for (Index i = 0; i < size; ++i) at(i) = std::log(double(1 + i % columns));
      break;
    case Kind::sines:
      for (Index i = 0; i < size; ++i) at(i) = sine(i / columns, i % columns, columns / 2);
      break;
    case Kind::identity:
    case Kind::near_identity:
      for (Index i = 0; i < size; ++i)
        at(i) = (i % columns == i / columns % rows ? init.a : 0.0) + (init.kind == Kind::identity ? 0.0 : init.b * rng.normal());
      break;
    case Kind::orthogonal: orthogonal(x, columns, rng); break;
    case Kind::semi_orthogonal: semi_orthogonal(x, columns, init.a, rng); break;
    case Kind::list: listed(init, shape, x); break;
    default: std::ranges::generate(x, [&] { return number(init, rng); });
  }
  return x;
}

template <class T>
void initialise(Parameters<T>& parameters, std::uint64_t seed, const std::function<bool(const std::string& name)>& which) {
  for (const Parameter<T>& p : parameters.all()) {
    if (which && !which(p.name())) continue;
    const std::vector<double> numbers =
        initial_values(p.spec.init, p.spec.shape, Rng(seed, hash_of(stream_of(p.name(), p.spec.init.beside))));
    copy_numbers(dense_view(Type::f64, reinterpret_cast<const std::byte*>(numbers.data()), p.spec.shape), p.numbers());
  }
}

template void initialise(Parameters<float>&, std::uint64_t, const std::function<bool(const std::string&)>&);
template void initialise(Parameters<double>&, std::uint64_t, const std::function<bool(const std::string&)>&);

}  // namespace isomer
