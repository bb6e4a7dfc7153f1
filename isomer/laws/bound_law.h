#pragma once
// A law with its options: what executes it, and what it says about itself with them.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isomer/laws/law.h"
#include "isomer/laws/tape.h"

namespace isomer {

struct Dsf;
struct DsfSource;

/// The tensors of a call by the places of their specs; absent ones are not there.
inline constexpr std::size_t kMostTensors = 16;
using LawViews = std::array<LawView, kMostTensors>;

/// How a law is run.
struct LawRun {
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1)
  Form form = Form::automatic;
  LawTape* tape = nullptr;  // forward leaves on it what backward, with the same inputs, finds there
  Context& context;
};

enum class LawPass { forward, backward, step };

/// Numbers that a stream keeps of one sequence.
struct StateSize {
  Index fixed = 0;      // whatever was seen
  Index per_token = 0;  // for every token seen
};

/// The state as that of a dynamical system: `features` numbers for each of `channels` channels (dsf.h).
struct StateDimension {
  Index features = 0, channels = 0;
  bool grows = false;  // one feature for every token seen
};

/// What a law keeps of a stream where arrays of fixed sizes will not do, such as a cache that grows.
class LawStream {
 public:
  virtual ~LawStream() = default;
  [[nodiscard]] virtual std::unique_ptr<LawStream> clone() const = 0;
  [[nodiscard]] virtual Index bytes() const = 0;
  /// All numbers by name behind `prefix`, for files. assign() throws Error when they are not those of such a state.
  virtual void add_to(Tensors& tensors, const std::string& prefix) const = 0;
  virtual void assign(const Tensors& tensors, const std::string& prefix) = 0;
};

class BoundLaw {
 public:
  [[nodiscard]] virtual const Law& law() const = 0;
  /// The options as text, those at their defaults left out: law().bind() makes the same of them.
  [[nodiscard]] virtual Settings settings() const = 0;

  /// Does no token see a later one?
  [[nodiscard]] virtual bool causal() const { return true; }
  /// Does it matter to a token how far another is away, beside which of the two comes first?
  [[nodiscard]] virtual bool counts_distances(Given) const { return false; }
  /// Is a token whose k and v are 0 as if it were not there, for the others?
  [[nodiscard]] virtual bool skips_empty_keys() const { return false; }
  /// Is the form there with these options? A form that is not is refused by apply and left out by check.
  [[nodiscard]] virtual bool offers(Form form) const;
  /// Is the input or output part of the law with these options beside these inputs? apply refuses an input that is not, and the
  /// gradient of an output that is not.
  [[nodiscard]] virtual bool uses(std::string_view tensor, Given given) const;
  /// Must the input be there beside these?
  [[nodiscard]] virtual bool needs(const TensorSpec& spec, Given given) const;
  /// The axes that an input or output may have beside these inputs: one or more of its spec's. Where a value without a fixed
  /// number of axes comes in, the first that fits is meant.
  [[nodiscard]] virtual std::span<const Axes> axes(const TensorSpec& spec, Given given) const;

  /// Views have the spec's axes and one floating type, with any strides. Outputs that are present are written; they must not
  /// overlap inputs, but a final state may be the memory of its initial one.
  virtual void forward(const LawViews& in, const LawViews& out, const LawRun& run) const = 0;
  /// `out` is what forward() wrote. Absent gradients of outputs are zero, absent gradients of inputs are not computed.
  virtual void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                        const LawRun& run) const = 0;

  /// What takes the place of Form::automatic; `taped`: a backward pass follows.
  [[nodiscard]] virtual Choice plan(const LawSizes& sizes, Given given, bool taped) const;
  /// In one sentence.
  [[nodiscard]] virtual std::string plan_reason(const LawSizes& sizes, const Choice& choice) const;
  /// Of a call in this form: the matrix products and the like that its header counts, not what the machine happens to do.
  [[nodiscard]] virtual double flops(const LawSizes& sizes, Given given, LawPass pass, Form form) const = 0;
  [[nodiscard]] virtual StateSize state_size(const LawSizes& sizes, Given given) const;
  /// Numbers of a token that forward() leaves for backward().
  [[nodiscard]] virtual double taped_floats(const LawSizes& sizes, Given given) const;
  /// By default a feature for each key and a channel for each value of each head.
  [[nodiscard]] virtual StateDimension state_dimension(const LawSizes& sizes, Given given) const;

  /// The state of a stream; null: the arrays of Law::states().
  [[nodiscard]] virtual std::unique_ptr<LawStream> start(Type type, const LawSizes& sizes) const;
  /// Any number of tokens that follow those of the stream, which takes them in. Only with start().
  virtual void stream(const LawViews& in, const LawViews& out, LawStream& stream, Context& context) const;

  /// The recurrence with these inputs, in ASCII, and how an input is called in it.
  [[nodiscard]] virtual std::vector<std::string> equations(Given given) const = 0;
  [[nodiscard]] virtual std::string_view symbol(const TensorSpec& input, Given given) const;

  /// The law as a dynamical system on the inputs of one sequence and head (dsf.h). Throws Error if it says none.
  [[nodiscard]] virtual Dsf system(const DsfSource& from) const;
  /// The inputs that are written to the state, which are those of the system: by default v; a second one is an imaginary part.
  [[nodiscard]] virtual std::vector<std::string_view> written() const { return {"v"}; }

  /// The state's axes of a sequence, and whether the law has it beside these inputs.
  [[nodiscard]] bool has_state(const StateSpec& state, Given given) const;
  [[nodiscard]] const Axes& state_axes(const StateSpec& state, Given given) const;

 protected:
  // Bound laws are plain values that may live on a tape, which destroys nothing.
  ~BoundLaw() = default;
};

/// The call of a case of `isomer bench`.
struct BoundCase {
  std::shared_ptr<const BoundLaw> bound;
  Given given;
  LawSizes sizes;

  /// Throws Error for a variant that the law does not have.
  BoundCase(const Law& law, const BenchCase& what);
  [[nodiscard]] Choice plan(const BenchCase& what) const;
};

/// Calls f.operator()<T>() with float or double.
template <class F>
void with_type(Type type, F f) {
  if (type == Type::f32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

}  // namespace isomer
