#pragma once
// A law says here everything about itself: its tensors, options, states, forms, costs, equations and the cases that prove and
// time it. What stands above is written once, against this; a new law is a new folder that implements it, and a line in laws.cc.
// C++ programs call the typed functions of a law's own header instead.
//
//   const Law& law = find_law("scalar_decay");
//   Tensors out = apply(law, {.inputs = in, .settings = {{"normaliser", "sum"}}, .form = Form::chunk, .context = context});
//
//   const auto bound = law.bind({{"normaliser", "sum"}});      // options are read once; then no call reads text
//   bound->forward(in, out, {.form = Form::chunk, .context = context});
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/base/settings.h"
#include "isomer/laws/law_view.h"
#include "isomer/laws/spec.h"

namespace isomer {

class BoundLaw;

/// How a law is executed. All forms give the same outputs, final states and gradients.
enum class Form { automatic, reference, step, chunk, parallel };
[[nodiscard]] std::string_view name_of(Form form);
[[nodiscard]] Form form_named(std::string_view name);

/// A call of a law on named tensors, with any strides. Gradients are wanted when an input is named grad_….
struct Call {
  NamedViews inputs;
  const Settings& settings;
  Form form = Form::automatic;
  Context& context;
};

/// One way of using a law that the proof covers. Sizes left out take small odd defaults.
struct Case {
  std::string label{};
  Settings settings{};
  std::vector<std::string> with{};  // optional inputs that are given; "log_decay:H" picks the alternative dims "H"
  Sizes sizes{};
  std::vector<std::string> positive{};   // drawn as |x| + 0.1, so that sums of them stay away from zero
  std::vector<std::string> unit_rows{};  // rows of the last axis have length one, so that products of many stay bounded
};

/// What to time. `variant` is one of the law's own names, e.g. "causal", "mlstm".
struct BenchCase {
  std::string subject, variant;
  Form form = Form::chunk;
  std::string direction = "forward";  // forward | backward | forward+backward | step
  Index B = 1, T = 512, S = 0, H = 8, K = 64, V = 64, window = 0;
  Index chunk = 0;  // tokens of a chunk; 0: the law's choice
};

/// A variant of `isomer bench` as a call.
struct BenchVariant {
  std::string_view name;
  Settings settings = {};
  std::vector<std::string_view> with = {};  // optional inputs that are given
};

/// What Form::automatic takes.
struct Choice {
  Form form = Form::chunk;
  Index chunk = 0;  // tokens of a chunk; 0: the form has none to choose
};

/// A prepared piece of work: run() may be called many times and allocates nothing after the first.
struct BenchWork {
  std::function<void(Context&)> run;
  double flops = 0;        // nominal (BoundLaw::flops)
  double state_bytes = 0;  // of one sequence
};

class Law {
 public:
  virtual ~Law() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view equation() const = 0;  // one line
  [[nodiscard]] virtual std::span<const TensorSpec> inputs() const = 0;
  [[nodiscard]] virtual std::span<const TensorSpec> outputs() const = 0;
  [[nodiscard]] virtual std::span<const StateSpec> states() const { return {}; }
  [[nodiscard]] virtual std::span<const OptionSpec> options() const = 0;
  [[nodiscard]] virtual std::span<const Form> forms() const = 0;
  [[nodiscard]] virtual std::span<const Case> cases() const = 0;
  /// Largest error allowed, in multiples of the type's epsilon times the largest absolute value of the tensor.
  [[nodiscard]] virtual double tolerance(std::string_view quantity) const = 0;
  /// The law with these options. Throws Error for what does not parse; unknown names are the caller's to refuse.
  [[nodiscard]] virtual std::shared_ptr<const BoundLaw> bind(const Settings& settings) const = 0;
  /// The call's names, types, shapes, values and form have been checked. Returns outputs, and grad_X for every floating input X
  /// that carries one if gradients are wanted. By default BoundLaw::forward and backward on new tensors.
  [[nodiscard]] virtual Tensors run(const Call& call, const Sizes& sizes) const;

  [[nodiscard]] virtual std::span<const BenchVariant> variants() const = 0;
  [[nodiscard]] virtual std::vector<BenchCase> bench_cases(bool quick) const = 0;
  /// The sizes of the call that is timed; by default heads of q, k and v.
  [[nodiscard]] virtual LawSizes bench_sizes(const BenchCase& what) const;
  [[nodiscard]] virtual BenchWork prepare(const BenchCase& what) const = 0;

  /// The place of a name among inputs() or outputs(), or −1.
  [[nodiscard]] int input(std::string_view name) const;
  [[nodiscard]] int output(std::string_view name) const;
};

/// All laws, in the order of the documentation.
[[nodiscard]] std::span<const Law* const> laws();
/// Throws Error naming the nearest law when there is none of that name.
[[nodiscard]] const Law& find_law(std::string_view name);

namespace internal {
/// One more law, for tests: call it before anything asks for the laws.
void add_law(const Law& law);
}  // namespace internal

/// Checks the call against the law's specs (unknown names, shapes, types, non-finite values, forms: Error) and runs it.
[[nodiscard]] Tensors apply(const Law& law, const Call& call);

/// Are gradients asked for?
[[nodiscard]] bool wants_gradients(const NamedViews& inputs);

/// The inputs of these names, by place.
[[nodiscard]] Given given_of(const Law& law, const NamedViews& inputs);

}  // namespace isomer
