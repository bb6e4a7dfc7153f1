#include "isomer/study/lab.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/laws/law.h"

namespace isomer::study {

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Row normal_row(std::size_t d, Rng& rng) {
  Row x(d);
  for (double& value : x) value = rng.normal();
  return x;
}

Matrix matrix(std::initializer_list<std::initializer_list<double>> rows) {
  Matrix x{.rows = Index(rows.size()), .columns = Index(rows.begin()->size()), .values = {}};
  for (const auto& row : rows) x.values.insert(x.values.end(), row);
  return x;
}

Matrix gaussian(Index rows, Index columns, Rng& rng, double deviation) {
  Matrix x{rows, columns};
  for (double& value : x.values) value = deviation * rng.normal();
  return x;
}

Matrix identity(Index n) {
  Matrix x{n, n};
  for (Index i = 0; i < n; ++i) x(i, i) = 1;
  return x;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns};
  for (Index i = 0; i < a.rows; ++i)
    for (Index k = 0; k < a.columns; ++k)
      for (Index j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t{a.columns, a.rows};
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  return t;
}

Matrix unit_rows(Matrix x) {
  for (Index i = 0; i < x.rows; ++i) {
    const double length = std::sqrt(row_product(x, i, x, i));
    for (Index j = 0; j < x.columns; ++j) x(i, j) /= length;
  }
  return x;
}

double largest_difference(const Matrix& a, const Matrix& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) most = std::max(most, std::abs(a.values[i] - b.values[i]));
  return most;
}

double row_product(const Matrix& a, Index i, const Matrix& b, Index j) {
  double sum = 0;
  for (Index k = 0; k < a.columns; ++k) sum += a(i, k) * b(j, k);
  return sum;
}

std::vector<double> solve(Matrix a, std::vector<double> b) {
  const Index n = a.rows;
  for (Index j = 0; j < n; ++j) {  // Cholesky: a becomes L
    for (Index k = 0; k < j; ++k)
      for (Index i = j; i < n; ++i) a(i, j) -= a(i, k) * a(j, k);
    require(a(j, j) > 0, "study", "expected a positive definite matrix");
    const double pivot = std::sqrt(a(j, j));
    for (Index i = j; i < n; ++i) a(i, j) /= pivot;
  }
  const auto at = [&](Index i) -> double& { return b[std::size_t(i)]; };
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < i; ++k) at(i) -= a(i, k) * at(k);
    at(i) /= a(i, i);
  }
  for (Index i = n - 1; i >= 0; --i) {
    for (Index k = i + 1; k < n; ++k) at(i) -= a(k, i) * at(k);
    at(i) /= a(i, i);
  }
  return b;
}

std::vector<double> symmetric_eigenvalues(Matrix a) {
  constexpr int kSweeps = 60;
  const Index n = a.rows;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (Index p = 0; p < n; ++p)
      for (Index q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (Index k = 0; k < n; ++k) {
          const double x = a(k, p), y = a(k, q);
          a(k, p) = c * x - s * y, a(k, q) = s * x + c * y;
        }
        for (Index k = 0; k < n; ++k) {
          const double x = a(p, k), y = a(q, k);
          a(p, k) = c * x - s * y, a(q, k) = s * x + c * y;
        }
      }
  std::vector<double> values;
  for (Index i = 0; i < n; ++i) values.push_back(a(i, i));
  std::ranges::sort(values);
  return values;
}

double ProcessorTime::now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

namespace {
/// B copies of a matrix as [B, rows, 1, columns]; more rows than it has are zero.
Tensor tensor_of(const Matrix& x, Index B, Index rows, Index first = 0, bool repeat = true) {
  Tensor tensor(Type::f64, {B, rows, 1, x.columns});
  double* to = tensor.data<double>();
  for (Index b = 0; b < B; ++b)
    for (Index i = 0; i < rows; ++i) {
      const Index from = repeat ? i : first + b * rows + i;
      for (Index j = 0; j < x.columns; ++j) *to++ = from < x.rows ? x(from, j) : 0;
    }
  return tensor;
}
}  // namespace

Matrix run_law(const std::string& law, const Settings& settings, const Matrix& queries, const Matrix& keys, const Matrix& values,
               Context& context) {
  Settings all = settings;
  all.insert_or_assign("causal", "false");
  // Laws with as many queries as keys get the queries in batches of that many.
  const Index N = keys.rows, B = (queries.rows + N - 1) / N;
  Tensors in;
  in.emplace("q", tensor_of(queries, B, N, 0, false));
  in.emplace("k", tensor_of(keys, B, N));
  in.emplace("v", tensor_of(values, B, N));
  const Tensors out = apply(find_law(law), {.inputs = in, .settings = all, .form = Form::automatic, .context = context});
  Matrix o{queries.rows, values.columns};
  std::copy_n(out.at("o").data<double>(), o.values.size(), o.values.data());
  return o;
}

Matrix law_weights(const std::string& law, const Settings& settings, const Matrix& queries, const Matrix& keys,
                   Context& context) {
  return run_law(law, settings, queries, keys, identity(keys.rows), context);
}

}  // namespace isomer::study
