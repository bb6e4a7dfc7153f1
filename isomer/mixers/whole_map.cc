#include "isomer/mixers/whole_map.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "isomer/laws/bound_law.h"
#include "isomer/laws/layout.h"

namespace isomer {

namespace {
bool counts_heads(Letter letter) {
  return letter == Letter::Gq || letter == Letter::Gk || letter == Letter::Gv || letter == Letter::H;
}

Index product(const std::vector<Index>& shape, std::size_t from, std::size_t to) {
  Index n = 1;
  for (std::size_t i = from; i < to; ++i) n *= shape[i];
  return n;
}

/// What one of H heads is given: of the axis of heads, one place.
Tensor of_head(const TensorSpec& spec, const Tensor& all, Index head, Index H) {
  std::vector<Index> shape = all.shape();
  const auto axes = std::ranges::find(spec.all(), int(shape.size()), &Axes::rank);
  if (axes == spec.all().end()) return all.clone();
  const std::size_t axis = std::size_t(std::ranges::find_if(*axes, counts_heads) - axes->begin());
  if (axis == shape.size()) return all.clone();
  const Index G = shape[axis], place = group_of(head, H, G), rows = product(shape, 0, axis);
  const std::size_t bytes = std::size_t(product(shape, axis + 1, shape.size())) * bytes_of(all.type());
  shape[axis] = 1;
  Tensor one(all.type(), shape);
  for (Index row = 0; row < rows; ++row)
    std::memcpy(one.bytes() + std::size_t(row) * bytes, all.bytes() + std::size_t(row * G + place) * bytes, bytes);
  return one;
}

Tensor identity(Index S) {
  Tensor one(Type::f64, {1, S, 1, S});
  std::fill_n(one.data<double>(), S * S, 0.0);
  for (Index s = 0; s < S; ++s) one.data<double>()[s * S + s] = 1;
  return one;
}

/// |Φ v − y|, over the largest |y|.
double error_of(const std::vector<double>& map, const Tensor& v, const Tensor& y, Index head) {
  const Index T = y.shape()[1], H = y.shape()[2], V = y.shape()[3], S = v.shape()[1];
  double worst = 0, largest = 0;
  for (Index t = 0; t < T; ++t)
    for (Index c = 0; c < V; ++c) {
      const double given = y.data<double>()[(t * H + head) * V + c];
      double sum = 0;
      for (Index s = 0; s < S; ++s) sum += map[t * S + s] * v.data<double>()[s * V + c];
      const double error = std::abs(sum - given);
      if (!std::isfinite(error)) return error;
      worst = std::max(worst, error);
      largest = std::max(largest, std::abs(given));
    }
  return worst / (largest > 0 ? largest : 1);
}
}  // namespace

std::vector<double> whole_map(const Law& law, const Tensors& inputs, const Settings& settings, const Tensors& outputs,
                              Index head) {
  const std::string name(law.outputs().front().name);
  require(outputs.contains(name), "whole_map", "expected the output ", name);
  const Tensor& y = outputs.at(name);
  require(y.shape().size() == 4 && y.shape()[0] == 1 && !inputs.contains("offsets"), "whole_map",
          "expected one sequence with heads");
  const Index H = y.shape()[2];
  require(head >= 0 && head < H, "whole_map", "expected a head below ", H, ", got ", head);
  const std::string values(law.bind(settings)->written().front());
  Tensors one;
  for (const TensorSpec& spec : law.inputs())
    if (const auto given = inputs.find(spec.name); given != inputs.end())
      one.emplace(spec.name, of_head(spec, given->second, head, H));
  const Tensor v = std::exchange(one.at(values), identity(one.at(values).shape()[1]));
  Context context(1);
  const Tensors weights = apply(law, {.inputs = one, .settings = settings, .context = context});
  const Tensor& found = weights.at(name);
  std::vector<double> map(found.data<double>(), found.data<double>() + found.size());
  constexpr double kRounding = 1e-9;
  require(error_of(map, v, y, head) < kRounding, "whole_map", "expected weights that do not depend on values");
  return map;
}

}  // namespace isomer
