#pragma once
// What analytic claims are measured with: small matrices, random ones, and laws of the engine applied to them, all in double.
//
//   const Matrix weights = law_weights("attention", {{"causal", "false"}}, queries, keys, context);
#include <string>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/base/rng.h"
#include "isomer/base/settings.h"

namespace isomer::study {

struct Matrix {
  Index rows = 0, columns = 0;
  std::vector<double> values = std::vector<double>(std::size_t(rows * columns));

  [[nodiscard]] double& operator()(Index i, Index j) { return values[std::size_t(i * columns + j)]; }
  [[nodiscard]] double operator()(Index i, Index j) const { return values[std::size_t(i * columns + j)]; }
};

using Row = std::vector<double>;
[[nodiscard]] double dot(const Row& a, const Row& b);
/// d standard normal numbers.
[[nodiscard]] Row normal_row(std::size_t d, Rng& rng);

[[nodiscard]] Matrix matrix(std::initializer_list<std::initializer_list<double>> rows);
[[nodiscard]] Matrix gaussian(Index rows, Index columns, Rng& rng, double deviation = 1);
[[nodiscard]] Matrix identity(Index n);
[[nodiscard]] Matrix product(const Matrix& a, const Matrix& b);
[[nodiscard]] Matrix transposed(const Matrix& a);
/// f of every number.
template <class F>
[[nodiscard]] Matrix mapped(Matrix x, F f) {
  for (double& value : x.values) value = f(value);
  return x;
}
/// Rows of length one.
[[nodiscard]] Matrix unit_rows(Matrix x);
[[nodiscard]] double largest_difference(const Matrix& a, const Matrix& b);
/// Of rows i of a and j of b.
[[nodiscard]] double row_product(const Matrix& a, Index i, const Matrix& b, Index j);
/// Solves a x = b for a small symmetric positive definite a, in place.
[[nodiscard]] std::vector<double> solve(Matrix a, std::vector<double> b);
/// Eigenvalues of a symmetric matrix, by rising value (Jacobi rotations).
[[nodiscard]] std::vector<double> symmetric_eigenvalues(Matrix a);

/// Time that a processor has spent on this thread: what others do on the machine does not count.
class ProcessorTime {
 public:
  ProcessorTime() : start_(now()) {}
  /// Since it was made.
  [[nodiscard]] double seconds() const { return now() - start_; }

 private:
  [[nodiscard]] static double now();
  double start_;
};

/// One head of `attention` or `scalar_decay`, every query on all keys: [queries, values' columns].
[[nodiscard]] Matrix run_law(const std::string& law, const Settings& settings, const Matrix& queries, const Matrix& keys,
                             const Matrix& values, Context& context);
/// The same with unit vectors as values: the weight of each key, [queries, keys].
[[nodiscard]] Matrix law_weights(const std::string& law, const Settings& settings, const Matrix& queries, const Matrix& keys,
                                 Context& context);

}  // namespace isomer::study
