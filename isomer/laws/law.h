#pragma once
// What every law offers to the tools: its name, tensors, options, forms, the cases that prove it and the ones that time it.
// `isomer apply`, `check` and `bench`, the property suite and the tests are written once, against this interface; a new law is
// a new folder that implements it, and a line in laws.cc. C++ programs call the typed functions of a law's own header instead.
//
//   const Law& law = find_law("scalar_decay");
//   Tensors out = apply(law, {.inputs = in, .settings = {{"normaliser", "sum"}}, .form = Form::chunk, .context = context});
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/base/settings.h"
#include "isomer/base/tensor.h"

namespace isomer {

/// How a law is executed. All forms give the same outputs, final states and gradients.
enum class Form { automatic, reference, step, chunk, parallel };
[[nodiscard]] std::string_view name_of(Form form);
[[nodiscard]] Form form_named(std::string_view name);

/// What a tensor's numbers mean: how tests draw them, and which non-finite values are allowed.
enum class Domain {
  normal,     // any number
  log_decay,  // the logarithm of a decay, mostly ≤ 0; −inf is a decay of exactly 0
  log_input,  // the logarithm of an input gate
  unit,       // in (0, 1)
  positive,   // such as a step in time; 0 is fine
  negative,   // such as the rates of a state that forgets
  gain,       // in (0, 2)
  count,      // a number of tokens; carries no gradient
  scale,      // a logarithm that only fixes a scale (initial_max); carries no gradient
  offsets,    // 64-bit integers that pack sequences
};

/// Does a gradient flow into an input, or out of an output, of this domain?
[[nodiscard]] constexpr bool differentiable(Domain domain) {
  return domain != Domain::count && domain != Domain::scale && domain != Domain::offsets;
}

/// `dims` names the axes, e.g. "B T Gq K"; alternatives stand behind '|', e.g. "B T H|H". Letters: B, T, S, K, V, C, N as in the
/// contracts; Gq, Gk, Gv the heads of q, k, v; H the largest of these; n the number of sequences (B, or those of offsets).
/// The dims of `offsets` are "n+1". An output without a gradient (log_sum) has Domain::scale.
struct TensorSpec {
  std::string_view name;
  std::string_view dims;
  Domain domain = Domain::normal;
  bool required = false;
};

/// The axes' sizes by letter.
using Sizes = std::map<std::string, Index, std::less<>>;

/// A call of a law on named tensors. Gradients are wanted when an input is named grad_….
struct Call {
  const Tensors& inputs;
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

/// What Form::automatic takes.
struct Choice {
  Form form = Form::chunk;
  Index chunk = 0;  // tokens of a chunk; 0: the form has none to choose
};

/// A prepared piece of work: run() may be called many times and allocates nothing after the first.
struct BenchWork {
  std::function<void(Context&)> run;
  double flops = 0;        // nominal, from the cost model in the law's header
  double state_bytes = 0;  // of one sequence
};

class Law {
 public:
  virtual ~Law() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view equation() const = 0;  // one line
  [[nodiscard]] virtual std::span<const TensorSpec> inputs() const = 0;
  [[nodiscard]] virtual std::span<const TensorSpec> outputs() const = 0;
  [[nodiscard]] virtual std::span<const OptionSpec> options() const = 0;
  [[nodiscard]] virtual std::span<const Form> forms() const = 0;
  [[nodiscard]] virtual std::span<const Case> cases() const = 0;
  /// Is the form there with these options? A form that is not is refused by apply and left out by check.
  [[nodiscard]] virtual bool offers(Form form, const Settings& settings) const;
  /// Is the input or output part of the law with these options and inputs? apply refuses an input that is not, and the gradient
  /// of an output that is not.
  [[nodiscard]] virtual bool uses(std::string_view tensor, const Settings& settings, const Tensors& inputs) const;
  /// The axes of an input or output beside these inputs, where its shape depends on which there are. One or more of the spec's.
  [[nodiscard]] virtual std::string_view dims(const TensorSpec& spec, const Tensors& inputs) const;
  /// Largest error allowed, in multiples of the type's epsilon times the largest absolute value of the tensor.
  [[nodiscard]] virtual double tolerance(std::string_view quantity) const = 0;
  /// The call's names, types, shapes, values and form have been checked; the law checks what only it knows.
  /// Returns outputs, and grad_X for every floating input X that carries one if gradients are wanted.
  [[nodiscard]] virtual Tensors run(const Call& call, const Sizes& sizes) const = 0;
  [[nodiscard]] virtual std::vector<BenchCase> bench_cases(bool quick) const = 0;
  [[nodiscard]] virtual BenchWork prepare(const BenchCase& what) const = 0;
  /// What the law takes in place of Form::automatic.
  [[nodiscard]] virtual Choice choose(const BenchCase& what) const;
};

/// All laws, in the order of the documentation.
[[nodiscard]] std::span<const Law* const> laws();
/// Throws Error naming the nearest law when there is none of that name.
[[nodiscard]] const Law& find_law(std::string_view name);

/// Checks the call against the law's specs (unknown names, shapes, types, non-finite values, forms: Error) and runs it.
[[nodiscard]] Tensors apply(const Law& law, const Call& call);

/// Are gradients asked for?
[[nodiscard]] bool wants_gradients(const Tensors& inputs);

}  // namespace isomer
