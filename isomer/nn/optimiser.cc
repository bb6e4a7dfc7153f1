#include "isomer/nn/optimiser.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/kernels/optimiser/optimiser.h"

namespace isomer {

namespace {
// In the order of OptimiserKind.
constexpr std::array<std::string_view, 2> kOptimiserNames{"adamw", "sgd"};

// Numbers of a block: some ten microseconds of work, so that threads share evenly and starting a task costs nothing beside it.
constexpr Index kBlock = 8192;

/// '*' in `pattern` stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t i = star; i <= text.size(); ++i)
    if (matches(rest, text.substr(i))) return true;
  return false;
}

/// Of all numbers of the gradient, whether it has arrived or not.
template <class T>
T* gradient_memory(const Parameter<T>& p) {
  return p.var.slot->grad + (p.var.value.data - p.var.slot->base);
}

template <class T>
Tensor copy_of(const Parameter<T>& p, const Buffer<T>& numbers) {
  Tensor tensor(type_of<T>, p.spec.shape);
  std::copy(numbers.begin(), numbers.end(), tensor.data<T>());
  return tensor;
}
}  // namespace

std::string_view name_of(OptimiserKind kind) { return kOptimiserNames[std::size_t(kind)]; }

OptimiserKind optimiser_named(std::string_view name) { return OptimiserKind(position_of("optimiser", name, kOptimiserNames)); }

void check(const OptimiserOptions& o) {
  const auto share = [](double x) { return x >= 0 && x < 1; };
  require(share(o.beta1) && share(o.beta2), "optimiser", "expected beta1 and beta2 in [0, 1), got ", o.beta1, " and ", o.beta2);
  require(share(o.momentum), "optimiser", "expected momentum in [0, 1), got ", o.momentum);
  require(o.eps > 0, "optimiser", "expected eps > 0, got ", o.eps);
  require(o.weight_decay >= 0, "optimiser", "expected weight_decay >= 0, got ", o.weight_decay);
  require(o.clip >= 0, "optimiser", "expected clip >= 0 (0: none), got ", o.clip);
  for (const ParameterGroup& group : o.groups) {
    require(group.lr_factor >= 0, "optimiser", "expected lr_factor >= 0 for ", group.match, ", got ", group.lr_factor);
    require(group.weight_decay.value_or(0) >= 0, "optimiser", "expected weight_decay >= 0 for ", group.match, ", got ",
            group.weight_decay.value_or(0));
  }
}

template <class T>
std::size_t Optimiser<T>::group_of(const Parameter<T>& parameter) const {
  const auto& groups = options_.groups;
  return std::size_t(std::find_if(groups.begin(), groups.end(),
                                  [&](const ParameterGroup& group) { return matches(group.match, parameter.name()); }) -
                     groups.begin());
}

template <class T>
Optimiser<T>::Optimiser(Parameters<T>& parameters, OptimiserOptions options) : options_(std::move(options)) {
  check(options_);
  std::vector<bool> used(options_.groups.size() + 1, false);
  for (const Parameter<T>& p : parameters.all()) {
    if (!p.trained()) continue;
    require(p.storage() == type_of<T>, "optimiser", "expected ", p.name(), " stored as ", name_of(type_of<T>),
            ", in which it is trained, got ", name_of(p.storage()));
    const Index size = p.var.value.size();
    const std::size_t group = group_of(p);
    used[group] = true;
    Moments m{&p, Buffer<T>(size), Buffer<T>(options_.kind == OptimiserKind::adamw ? size : 0), 1,
              p.spec.decay == Decay::yes ? options_.weight_decay : 0};
    if (group < options_.groups.size()) {
      m.lr_factor = options_.groups[group].lr_factor;
      m.weight_decay = options_.groups[group].weight_decay.value_or(m.weight_decay);
    }
    std::fill(m.first.begin(), m.first.end(), T(0));
    std::fill(m.second.begin(), m.second.end(), T(0));
    for (Index begin = 0; begin < size; begin += kBlock)
      blocks_.push_back({moments_.size(), begin, std::min(kBlock, size - begin)});
    moments_.push_back(std::move(m));
  }
  for (std::size_t i = 0; i < options_.groups.size(); ++i)
    require(used[i], "optimiser", "expected a parameter that belongs to the group ", options_.groups[i].match, ", found none");
  squares_.resize(blocks_.size());
  parameters.group_gradients(used.size(), [&](const Parameter<T>& p) { return group_of(p); });
}

template <class T>
double Optimiser<T>::gradient_norm(Context& context) {
  context.parallel(Index(blocks_.size()), [&](Index i, Workspace&) {
    const Block& block = blocks_[std::size_t(i)];
    const Parameter<T>& p = *moments_[block.owner].parameter;
    squares_[std::size_t(i)] =
        p.gradient().empty() ? 0.0 : sum_of_squares(gradient_memory(p) + block.begin, block.size, context.isa());
  });
  double sum = 0;
  for (const double square : squares_) sum += square;
  return std::sqrt(sum);
}

template <class T>
void Optimiser<T>::update(const Block& block, double lr, double gradient_scale, Isa isa) const {
  const Moments& m = moments_[block.owner];
  T* gradient = gradient_memory(*m.parameter) + block.begin;
  if (m.parameter->gradient().empty()) std::fill_n(gradient, block.size, T(0));
  const UpdateArrays<T> arrays{.values = m.parameter->values().data() + block.begin,
                               .gradient = gradient,
                               .first = m.first.data() + block.begin,
                               .second = m.second.data() + block.begin,
                               .size = block.size};
  const double rate = lr * m.lr_factor, t = double(steps_);
  if (options_.kind == OptimiserKind::adamw)
    adamw(arrays,
          {.lr = rate,
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .eps = options_.eps,
           .decay = m.weight_decay,
           .gradient_scale = gradient_scale,
           .correction1 = 1 - std::pow(options_.beta1, t),
           .correction2 = 1 - std::pow(options_.beta2, t)},
          isa);
  else
    sgd(arrays, {.lr = rate, .momentum = options_.momentum, .decay = m.weight_decay, .gradient_scale = gradient_scale}, isa);
}

template <class T>
double Optimiser<T>::step(double lr, Context& context) {
  const double norm = gradient_norm(context);
  if (!std::isfinite(norm)) return norm;
  const double scale = options_.clip > 0 && norm > options_.clip ? options_.clip / norm : 1;
  ++steps_;
  context.parallel(Index(blocks_.size()),
                   [&](Index i, Workspace&) { update(blocks_[std::size_t(i)], lr, scale, context.isa()); });
  return norm;
}

template <class T>
Tensors Optimiser<T>::state() const {
  Tensors all;
  Tensor step(Type::i64, {1});
  step.data<std::int64_t>()[0] = steps_;
  all.emplace("step", std::move(step));
  for (const Moments& m : moments_) {
    all.emplace("m." + m.parameter->name(), copy_of(*m.parameter, m.first));
    if (m.second.size() > 0) all.emplace("v." + m.parameter->name(), copy_of(*m.parameter, m.second));
  }
  return all;
}

template <class T>
void Optimiser<T>::load(const Tensors& state) {
  const Tensors known = Optimiser<T>::state();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : known) names.push_back(name);
  for (const auto& [name, tensor] : state)
    require(known.contains(name), "optimiser", "there is no state ", name, did_you_mean(name, names));
  for (const auto& [name, want] : known) {
    const auto found = state.find(name);
    require(found != state.end(), "optimiser", "expected the state ", name, ", found none");
    const Tensor& got = found->second;
    require(got.type() == want.type() && got.shape() == want.shape(), "optimiser", "expected the state ", name, " as ",
            name_of(want.type()), " of the shape of its parameter, got ", name_of(got.type()), " with ", got.size(), " numbers");
  }
  const Index steps = state.find("step")->second.data<std::int64_t>()[0];
  require(steps >= 0, "optimiser", "expected step >= 0, got ", steps);
  steps_ = steps;
  for (Moments& m : moments_) {
    std::copy_n(state.find("m." + m.parameter->name())->second.template data<T>(), m.first.size(), m.first.data());
    if (m.second.size() > 0)
      std::copy_n(state.find("v." + m.parameter->name())->second.template data<T>(), m.second.size(), m.second.data());
  }
}

template class Optimiser<float>;
template class Optimiser<double>;

}  // namespace isomer
