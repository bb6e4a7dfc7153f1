#include "isomer/nn/mixer_check.h"

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "isomer/base/error.h"
#include "isomer/laws/bound_law.h"
#include "isomer/mixers/fingerprint.h"
#include "isomer/nn/mixer_dsf.h"
#include "isomer/nn/small_layer.h"

namespace isomer {

namespace {
// The sums of a layer have some hundred terms of its largest size; laws themselves have tighter limits.
constexpr double kEpsilons = 64, kDouble = 1e-12, kSlope = 1e-6;

double limit_of(Type type) { return type == Type::f32 ? kEpsilons * epsilon_of(type) : kDouble; }

/// The largest difference over the largest number wanted; a NaN is infinite.
template <class T>
double distance(const std::vector<T>& got, const std::vector<T>& want) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(double(got[i]) - double(want[i]));
    worst = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(worst, d);
    largest = std::max(largest, std::abs(double(want[i])));
  }
  return worst / (largest > 0 ? largest : 1);
}

/// The worst row of every type, form and quantity.
class Rows {
 public:
  explicit Rows(const Preset& preset) : preset_(preset) {}
  std::string label;  // of the case at work

  void add(Type type, const char* quantity, Form form, double error, double limit) {
    CheckRow& row = rows_[{type, quantity, form}];
    if (row.subject.empty())
      row = {.subject = std::string(preset_.name),
             .form = std::string(name_of(form)),
             .type = type == Type::f32 ? "f32" : "f64",
             .quantity = quantity,
             .limit = limit,
             .worst = label};
    if (!(error <= row.error)) {
      row.error = error;
      row.worst = label;
    }
    row.pass = row.error <= row.limit;
  }
  [[nodiscard]] std::vector<CheckRow> all() const {
    std::vector<CheckRow> all;
    for (const auto& [key, row] : rows_) all.push_back(row);
    return all;
  }

 private:
  const Preset& preset_;
  std::map<std::tuple<Type, std::string, Form>, CheckRow> rows_;
};

/// A prompt of `cut` tokens, behind every other one a second of two, and steps.
template <class T>
std::vector<T> streamed(SmallLayer<T>& layer, Index cut, Context& context) {
  Tape<T> tape(context, Record::no);
  MixerState<T> state = layer.mixer().start(layer.kBatch);
  std::vector<T> all(layer.x().size());
  const View<T, 4> to = contiguous(all.data(), {layer.kBatch, layer.tokens(), 1, layer.width()});
  const Index second = cut % 2 == 0 && cut + 2 <= layer.tokens() ? 2 : 0;
  for (Index begin = 0, count = cut; begin < layer.tokens();) {
    const Var<T> y = layer.prefill(tape, begin, count, state);
    for (Index b = 0; b < layer.kBatch; ++b)
      for (Index t = 0; t < count; ++t) std::copy_n(y.value.at(b, t), layer.width(), to.at(b, begin + t));
    tape.clear();
    begin += count;
    count = begin == cut && second > 0 ? second : 1;
  }
  return all;
}

template <class T>
double streaming_error(const graph::Graph& graph, Context& context) {
  SmallLayer<T> layer(graph);
  const std::vector<T> want = layer.forward(context);
  double worst = 0;
  for (Index cut = 0; cut <= layer.tokens(); ++cut) worst = std::max(worst, distance(streamed(layer, cut, context), want));
  return worst;
}

/// What outputs before a token change by when it changes.
double causality_error(const graph::Graph& graph, Context& context) {
  SmallLayer<float> layer(graph);
  const std::vector<float> want = layer.forward(context);
  double worst = 0;
  for (const Index t : {Index(0), layer.tokens() / 2, layer.tokens() - 1}) {
    SmallLayer<float> other(graph);
    for (Index b = 0; b < layer.kBatch; ++b)
      for (Index d = 0; d < layer.width(); ++d) other.all()(b, t, 0, d) += 0.5f;
    const std::vector<float> got = other.forward(context);
    for (Index b = 0; b < layer.kBatch; ++b)
      for (Index i = b * layer.tokens() * layer.width(); i < (b * layer.tokens() + t) * layer.width(); ++i) {
        const double d = std::abs(double(got[std::size_t(i)]) - double(want[std::size_t(i)]));
        worst = d <= worst ? worst : std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
      }
  }
  return worst;
}

template <class T>
void check_forms(const graph::Graph& graph, Context& context, Rows& rows) {
  SmallLayer<T> layer(graph);
  std::vector<LawCall> calls;
  {
    Tape<T> tape(context, Record::no);
    calls = layer.law_calls(tape);
  }
  const auto offered = [&](Form form) {
    return std::ranges::all_of(calls, [&](const LawCall& call) {
      const Law& law = find_law(call.law);
      return std::ranges::count(law.forms(), form) > 0 && law.bind(call.settings)->offers(form);
    });
  };
  const std::vector<T> want = layer.forward(context, Form::reference);
  for (const Form form : {Form::automatic, Form::step, Form::chunk, Form::parallel}) {
    if (form != Form::automatic && !offered(form)) continue;
    rows.add(type_of<T>, "forms", form, distance(layer.forward(context, form), want), limit_of(type_of<T>));
  }
}

/// How far the laws are from the dynamical systems that they are, a normaliser in the state and at the read-out.
double system_error(const graph::Graph& graph, Context& context) {
  SmallLayer<double> layer(graph);
  Tape<double> tape(context, Record::no);
  double worst = 0;
  for (const LawCall& call : layer.law_calls(tape))
    for (const auto eta : {DsfOptions::Eta::telescoped, DsfOptions::Eta::read_out})
      worst = std::max(worst, dsf_error(call, {.eta = eta}));
  return worst;
}

/// Numbers that move, and the gradient that is claimed for them.
struct Part {
  std::span<double> values;
  std::span<const double> gradient;
};

/// The sum of outputs by fixed weights.
class Sum {
 public:
  Sum(const graph::Graph& graph, Context& context) : layer_(graph), context_(context), tape_(context) {
    Rng rng(3);
    weights_.resize(layer_.x().size());
    for (double& w : weights_) w = rng.normal();
    const Var<double> x = tape_.input(layer_.all(), true);
    const MixerPass<double> others = layer_.carried(tape_, true);
    std::ranges::copy(weights_, tape_.seed(layer_.mixer().forward(tape_, x, others)).data);
    tape_.backward();
    parts_.push_back({layer_.x(), {tape_.arrived(x).data, layer_.x().size()}});
    for (std::size_t i = 0; i < others.taken.size(); ++i) {
      std::vector<double>& numbers = layer_.others()[i].numbers;
      parts_.push_back({numbers, {tape_.arrived(others.taken[i]).data, numbers.size()}});
    }
    for (const Parameter<double>& p : layer_.parameters().all())
      if (p.trained()) parts_.push_back({p.values(), p.gradient()});
    for (const Part& part : parts_)
      for (const double g : part.gradient) largest_ = std::max(largest_, std::abs(g));
  }

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// Of all gradients.
  [[nodiscard]] double largest() const { return largest_; }

  /// How far the slope along a direction is from what the gradient says, over the size of the gradients there.
  [[nodiscard]] double error(const Part& part, std::span<const double> direction) {
    // A step errs by its square where the sum bends, by a jump where it meets the corner of a relu, and by rounding over it: one
    // that is short enough is right.
    double least = std::numeric_limits<double>::infinity();
    for (const double step : {1e-5, 1e-6, 1e-7})
      if (least > kSlope / 4) least = std::min(least, error(part, direction, step));
    return least;
  }

 private:
  [[nodiscard]] double error(const Part& part, std::span<const double> direction, double step) {
    if (part.gradient.size() != part.values.size()) return std::numeric_limits<double>::infinity();
    const std::vector<double> before(part.values.begin(), part.values.end());
    const auto at = [&](double h) {
      for (std::size_t i = 0; i < before.size(); ++i) part.values[i] = before[i] + h * direction[i];
      return value();
    };
    double want = 0, size = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      want += direction[i] * part.gradient[i];
      size += direction[i] * direction[i] * part.gradient[i] * part.gradient[i];
    }
    const double got = (at(step) - at(-step)) / (2 * step);
    std::ranges::copy(before, part.values.begin());
    return std::abs(got - want) / std::max({std::sqrt(size), largest_, 1e-3});
  }
  [[nodiscard]] double value() {
    const std::vector<double> y = layer_.forward(context_);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights_[i];
    return sum;
  }

  SmallLayer<double> layer_;
  Context& context_;
  Tape<double> tape_;
  std::vector<double> weights_;
  std::vector<Part> parts_;
  double largest_ = 0;
};

/// Along random directions of each parameter and of the inputs, and one by one where there are few numbers.
double gradient_error(const graph::Graph& graph, Context& context) {
  constexpr int kDirections = 2;
  constexpr std::size_t kFew = 8;
  Sum sum(graph, context);
  Rng rng(4);
  double worst = 0;
  const auto take = [&](double error) { worst = error <= worst ? worst : std::isnan(error) ? HUGE_VAL : error; };
  for (const Part& part : sum.parts()) {
    std::vector<double> direction(part.values.size());
    for (int trial = 0; trial < kDirections; ++trial) {
      for (double& d : direction) d = rng.normal();
      take(sum.error(part, direction));
    }
    for (std::size_t i = 0; i < direction.size() && direction.size() <= kFew; ++i) {
      std::ranges::fill(direction, 0.0);
      direction[i] = 1;
      take(sum.error(part, direction));
    }
  }
  return worst;
}

template <class T>
void check_type(const graph::Graph& graph, Context& context, Rows& rows) {
  if (graph::causal(graph))
    rows.add(type_of<T>, "streaming", Form::automatic, streaming_error<T>(graph, context), limit_of(type_of<T>));
  check_forms<T>(graph, context, rows);
}

/// The words to choose from, or both values of a flag; or one more number where 0 or inf is none.
std::vector<std::string> choices_of(const MixerOption& option) {
  if (option.fallback == "true" || option.fallback == "false") return {"true", "false"};
  if (option.fallback == "0") return {"2"};
  if (option.fallback == "inf") return {"0.5"};
  return option.choices;
}

constexpr Place kPlace{.width = 16}, kSecond{.width = 16, .layer = 1, .layers = 2, .before = 1};

/// Options that mean something only together, or of which one value is special; each for the presets that take it.
const std::vector<Settings>& combinations() {
  static const std::vector<Settings> all{
      {{"conv", "0"}},
      {{"key", "6"}, {"value", "3"}},
      {{"kv_heads", "1"}},
      {{"norm", "layer"}, {"norm_gain", "true"}},
      {{"sinks", "2"}, {"decay", "true"}},
      {{"clamp", "0.5"}, {"denominator", "count"}, {"out_gate", "after"}},
      {{"causal", "false"}, {"local_heads", "1"}, {"block", "3"}},
      {{"causal", "false"}, {"feature_eps", "0.01"}},
      {{"causal", "false"}, {"residual", "image"}, {"rows", "3"}, {"columns", "4"}},
  };
  return all;
}

/// Does the preset take these settings?
bool makes_sense(const Preset& preset, const Settings& settings) {
  try {
    (void)build_mixer(preset, kPlace, settings);
    return true;
  } catch (const Error&) {
    return false;
  }
}
}  // namespace

std::vector<MixerCase> mixer_cases(const Preset& preset) {
  std::vector<MixerCase> cases{{"as it is", {}}};
  const std::vector<MixerOption> options = options_of(preset, kPlace);
  // So small that windows are full and that heads are more than one.
  for (const auto& [name, value] : {std::pair("heads", "2"), std::pair("window", "5")})
    if (std::ranges::count(options, name, &MixerOption::name) > 0) cases[0].settings[name] = value;
  const auto add = [&](const Settings& more) {
    MixerCase next{"", cases[0].settings};
    for (const auto& [name, value] : more) {
      next.label += (next.label.empty() ? "" : ", ") + name + "=" + value;
      next.settings[name] = value;
    }
    const bool sensible = makes_sense(preset, next.settings);
    if (sensible) cases.push_back(std::move(next));
    return sensible;
  };
  for (const MixerOption& option : options)
    for (const std::string& choice : choices_of(option)) {
      if (choice == option.fallback || cases[0].settings.contains(option.name)) continue;
      // Some options belong to a position that is not the default.
      if (!add({{option.name, choice}}) && option.name != "position")
        (void)add({{option.name, choice}, {"position", "selective-rope"}});
    }
  for (const Settings& combination : combinations()) (void)add(combination);
  MixerCase second{"as the second layer", cases[0].settings, true};
  if (graph::dump(build_small(preset, second)) != graph::dump(build_small(preset, cases[0]))) cases.push_back(std::move(second));
  return cases;
}

graph::Graph build_small(const Preset& preset, const MixerCase& what) {
  return build_mixer(preset, what.second ? kSecond : kPlace, what.settings);
}

std::vector<CheckRow> check(const Preset& preset, Context& context, const CheckPlan& plan) {
  return check(preset, mixer_cases(preset), context, plan);
}

std::vector<CheckRow> check(const Preset& preset, std::span<const MixerCase> cases, Context& context, const CheckPlan& plan) {
  Rows rows(preset);
  int done = 0;
  for (const MixerCase& what : cases) {
    rows.label = what.label;
    const graph::Graph graph = build_small(preset, what);
    for (const Type type : plan.types)
      if (type == Type::f32)
        check_type<float>(graph, context, rows);
      else
        check_type<double>(graph, context, rows);
    if (graph::causal(graph)) {
      rows.add(Type::f32, "causality", Form::automatic, causality_error(graph, context), 0);
      rows.add(Type::f64, "dsf", Form::automatic, system_error(graph, context), kDouble);
    }
    // What is detached has no gradient, but a slope.
    const auto detached = [](const graph::Node& node) {
      return std::holds_alternative<graph::Detach>(node.work) || std::holds_alternative<graph::Largest>(node.work);
    };
    if (std::ranges::none_of(graph.nodes, detached))
      rows.add(Type::f64, "gradient", Form::automatic, gradient_error(graph, context), kSlope);
    ++done;
    if (plan.progress) plan.progress(done, int(cases.size()));
  }
  return rows.all();
}

}  // namespace isomer
