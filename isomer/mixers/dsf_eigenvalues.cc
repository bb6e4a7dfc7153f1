// Eigenvalues of a small dense matrix: Hessenberg form, then QR steps with Wilkinson's shift, in complex numbers so that no
// 2 × 2 block is special.
#include <algorithm>
#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "isomer/mixers/dsf.h"

namespace isomer {

namespace {

struct Matrix {
  Index n;
  std::vector<Complex> values;
  Complex& operator()(Index i, Index j) { return values[std::size_t(i * n + j)]; }
};

/// A reflection of rows i and the columns alike, for each column: zeros below the first subdiagonal.
void to_hessenberg(Matrix& a) {
  const Index n = a.n;
  for (Index k = 0; k + 2 < n; ++k) {
    double norm = 0;
    for (Index i = k + 1; i < n; ++i) norm += std::norm(a(i, k));
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    std::vector<Complex> x(std::size_t(n), Complex(0));  // the reflection is I − 2 x xᴴ / xᴴx
    for (Index i = k + 1; i < n; ++i) x[i] = a(i, k);
    x[k + 1] += norm * (std::abs(x[k + 1]) == 0 ? Complex(1) : x[k + 1] / std::abs(x[k + 1]));
    double square = 0;
    for (const Complex& e : x) square += std::norm(e);
    for (Index j = 0; j < n; ++j) {
      Complex dot = 0;
      for (Index i = k + 1; i < n; ++i) dot += std::conj(x[i]) * a(i, j);
      for (Index i = k + 1; i < n; ++i) a(i, j) -= 2 / square * x[i] * dot;
    }
    for (Index i = 0; i < n; ++i) {
      Complex dot = 0;
      for (Index j = k + 1; j < n; ++j) dot += a(i, j) * x[j];
      for (Index j = k + 1; j < n; ++j) a(i, j) -= 2 / square * dot * std::conj(x[j]);
    }
  }
}

/// The eigenvalue of the last 2 × 2 block that is nearest to its last entry.
Complex wilkinson_shift(Matrix& a, Index last) {
  const Complex p = a(last - 1, last - 1), s = a(last, last);
  const Complex half = (p - s) / 2.0, root = std::sqrt(half * half + a(last - 1, last) * a(last, last - 1));
  return std::abs(half + root) < std::abs(half - root) ? s + half + root : s + half - root;
}

/// One step of QR on rows and columns first … last: A − shift = QR becomes RQ + shift.
void qr_step(Matrix& a, Index first, Index last, Complex shift) {
  struct Rotation {
    double c;
    Complex s;
  };
  std::vector<Rotation> rotations;
  for (Index i = first; i <= last; ++i) a(i, i) -= shift;
  for (Index i = first; i < last; ++i) {
    const Complex x = a(i, i), y = a(i + 1, i);
    const double norm = std::hypot(std::abs(x), std::abs(y));
    const Complex phase = std::abs(x) == 0 ? Complex(1) : x / std::abs(x);
    const Rotation r = norm == 0 ? Rotation{1, 0} : Rotation{std::abs(x) / norm, phase * std::conj(y) / norm};
    rotations.push_back(r);
    for (Index j = i; j <= last; ++j) {
      const Complex up = a(i, j), down = a(i + 1, j);
      a(i, j) = r.c * up + r.s * down;
      a(i + 1, j) = -std::conj(r.s) * up + r.c * down;
    }
  }
  for (Index i = first; i < last; ++i) {
    const Rotation r = rotations[std::size_t(i - first)];
    for (Index j = first; j <= std::min(i + 2, last); ++j) {
      const Complex left = a(j, i), right = a(j, i + 1);
      a(j, i) = r.c * left + std::conj(r.s) * right;
      a(j, i + 1) = -r.s * left + r.c * right;
    }
  }
  for (Index i = first; i <= last; ++i) a(i, i) += shift;
}

}  // namespace

std::vector<Complex> eigenvalues(std::vector<Complex> matrix, Index n) {
  require(Index(matrix.size()) == n * n, "eigenvalues", "expected ", n * n, " numbers, got ", matrix.size());
  constexpr int kSteps = 60;  // for one eigenvalue; three are usual
  Matrix a{n, std::move(matrix)};
  to_hessenberg(a);
  double size = 0;
  for (const Complex& x : a.values) size = std::max(size, std::abs(x));
  require(std::isfinite(size), "eigenvalues", "expected finite numbers");
  std::vector<Complex> values(std::size_t(n), Complex(0));
  int steps = 0;
  for (Index last = n - 1; last >= 0;) {
    Index first = last;
    while (first > 0 && std::abs(a(first, first - 1)) > std::numeric_limits<double>::epsilon() * size) --first;
    if (first == last) {
      values[std::size_t(last)] = a(last, last);
      --last;
      steps = 0;
      continue;
    }
    require(steps < kSteps, "eigenvalues", "expected to find eigenvalue ", last, " in ", kSteps, " steps");
    // A shift of another kind breaks the rare cycle.
    const Complex shift = ++steps % 20 == 0 ? a(last, last) + std::abs(a(last, last - 1)) : wilkinson_shift(a, last);
    qr_step(a, first, last, shift);
  }
  return values;
}

}  // namespace isomer
