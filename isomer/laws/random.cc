#include "isomer/laws/random.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "isomer/base/hash.h"
#include "isomer/base/rng.h"
#include "isomer/laws/shapes.h"

namespace isomer {

namespace {
double log_sigmoid(double x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }

double draw(Domain domain, Rng& rng) {
  const double x = rng.normal();
  switch (domain) {
    case Domain::log_decay: return log_sigmoid(2 * x + 2);  // decays from a tenth to nearly one
    case Domain::unit: return std::exp(log_sigmoid(x));
    case Domain::positive: return std::exp(x - 1);
    case Domain::negative: return -std::exp(x);
    case Domain::gain: return 2 * std::exp(log_sigmoid(x));
    case Domain::count: return double(1 + rng.below(8));
    default: return x;
  }
}

/// Numbers of a name depend on the seed and the name alone, so another optional input leaves them as they are.
std::uint64_t stream_of(std::string_view name) { return hash_of(name); }

struct Draw {
  Domain domain;
  bool positive, unit_rows;
  Type type;
  std::uint64_t seed;
};

void draw_row(const Draw& how, Rng& rng, std::vector<double>& row) {
  double squares = 0;
  for (double& x : row) {
    x = draw(how.domain, rng);
    if (how.positive) x = std::abs(x) + 0.1;
    squares += x * x;
  }
  for (double& x : row)
    if (how.unit_rows) x /= std::sqrt(squares);
}

Tensor random_tensor(std::string_view name, std::vector<Index> shape, const Draw& how) {
  Rng rng(how.seed, stream_of(name));
  const Index width = how.unit_rows ? shape.back() : 1;
  Tensor tensor(how.type, std::move(shape));
  std::vector<double> row(std::size_t(width), 0.0);
  for (Index i = 0; i < tensor.size(); ++i) {
    if (i % width == 0) draw_row(how, rng, row);
    const auto value = float(row[std::size_t(i % width)]);
    if (how.type == Type::f32)
      tensor.data<float>()[i] = value;
    else
      tensor.data<double>()[i] = double(value);
  }
  return tensor;
}

/// n sequences of growing length, the second of them empty.
Tensor random_offsets(const Sizes& sizes) {
  const Index n = sizes.at("n"), T = sizes.at("T"), full = std::max<Index>(n - 1, 1);
  Tensor offsets(Type::i64, {n + 1});
  for (Index i = 0; i <= n; ++i) {
    const Index filled = n == 1 || i < 2 ? i : i - 1;
    offsets.data<std::int64_t>()[i] = filled * filled * T / (full * full);
  }
  return offsets;
}

bool named(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The axes the case gives this input, or none when it is not given.
std::optional<Axes> axes_given(const TensorSpec& spec, const Case& what) {
  for (const std::string& given : what.with) {
    const std::size_t colon = given.find(':');
    if (std::string_view(given).substr(0, colon) != spec.name) continue;
    if (colon == std::string::npos) return spec.axes[0];
    for (const Axes& axes : spec.all())
      if (axes == axes_of(std::string_view(given).substr(colon + 1))) return axes;
    fail("case", "expected an alternative of ", spec.dims, " for ", spec.name, ", got ", given);
  }
  return spec.required ? std::optional(spec.axes[0]) : std::nullopt;
}

bool packs(const Law& law, const Case& what) {
  const auto specs = law.inputs();
  return std::any_of(specs.begin(), specs.end(),
                     [&](const TensorSpec& spec) { return spec.domain == Domain::offsets && named(what.with, spec.name); });
}
}  // namespace

Sizes complete(const Law& law, const Case& what) {
  const bool packed = packs(law, what);
  Sizes sizes = what.sizes;
  sizes.emplace("B", packed ? 1 : 2);
  sizes.emplace("n", packed ? 4 : sizes["B"]);
  sizes.emplace("T", 19);
  sizes.emplace("S", sizes["T"]);
  Index H = 0;
  for (const char* heads : {"Gq", "Gk", "Gv"})
    if (sizes.contains(heads)) H = std::max(H, sizes[heads]);
  sizes.emplace("H", H > 0 ? H : 2);
  for (const char* heads : {"Gq", "Gk", "Gv"}) sizes.emplace(heads, sizes["H"]);
  sizes.emplace("K", 5);
  sizes.emplace("V", 3);
  sizes.emplace("N", 3);
  sizes.emplace("C", 4);
  return sizes;
}

Tensors random_inputs(const Law& law, const Case& what, Type type, std::uint64_t seed) {
  const Sizes sizes = complete(law, what);
  Tensors inputs;
  for (const TensorSpec& spec : law.inputs()) {
    const std::optional<Axes> axes = axes_given(spec, what);
    if (!axes) continue;
    const std::string name(spec.name);
    inputs.emplace(name, spec.domain == Domain::offsets
                             ? random_offsets(sizes)
                             : random_tensor(name, shape_of(*axes, sizes),
                                             {spec.domain, named(what.positive, name), named(what.unit_rows, name), type, seed}));
  }
  const std::shared_ptr<const BoundLaw> bound = law.bind(what.settings);
  const Given given = given_of(law, inputs);
  for (const TensorSpec& spec : law.outputs()) {
    if (!differentiable(spec.domain) || !bound->uses(spec.name, given)) continue;
    const std::string name = "grad_" + std::string(spec.name);
    inputs.emplace(name, random_tensor(name, shape_of(bound->axes(spec, given)[0], sizes),
                                       {Domain::normal, named(what.positive, name), named(what.unit_rows, name), type, seed}));
  }
  return inputs;
}

}  // namespace isomer
