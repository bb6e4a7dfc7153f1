#pragma once
// attention: softmax attention and its relatives as a law whose state is the keys and values seen.
//
//   logit   s_ts = min(scale · q_t·k_s, clamp)
//   weight  w_ts = κ(s_ts) · e^{c_t − c_s + b}  κ = exp, or its Taylor polynomial of order P;  c = prefix sums of log_forget
//   output  o_t  = N( Σ_s w_ts v_s )            s runs over the keys that query t sees
//
// Which keys t sees: all (bidirectional), those up to t (causal; with S > T the queries are the last T positions), of these the
// last `window` (which counts t itself), and always the first `sinks` of the sequence. With a `block` (bidirectional) those of
// its own block of so many positions and of the two beside it. N is set by `normaliser`.
//
// b is the bias of the key's place seen from the query, r = s − t, from a table for each head: of `bias` [H,N] the entries are
// those of r from −(N − 1) to 0 (causal) or N of them from −⌊N/2⌋ on (bidirectional), and what is farther away has the last
// of its side. With kernel exp and without sinks, whose distances a stream does not know.
//
//   Context context;
//   attention<float>({.q = q, .k = k, .v = v}, {}, Form::automatic, {.o = o}, context);
//
// Shapes: bias [H,N], q [B,T,Gq,K], k [B,S,Gk,K], v [B,S,Gv,V], log_forget [B,S,H], gate [B,T,H], o [B,T,H,V], log_sum [B,T,H]. H
// is the largest of Gq, Gk, Gv and the others divide it. Views may have any strides; outputs must not overlap inputs. T = 0 is
// fine.
//
// Cost: 2·(K + V) flops for every visible pair, forward; 2.5 times that backward. Scratch: O(S·(K + V)) for a head and a tile for
// each thread; Form::parallel takes one tile of T × S. The vjp keeps log-sums only.
//
// Numerics: online softmax in the working type, prefix sums of log_forget in double. log_forget = −inf forgets exactly. A NaN or
// inf in q, k or v reaches the outputs of its own block of queries and of those after it; results elsewhere are unharmed. A query
// that sees no key (bidirectional only) gives o = 0 and log_sum = −inf. No gradient flows into a logit above `clamp`; one that is
// within rounding of it may count as above or below, depending on the form.
//
// Not for use inside Context::parallel: it runs its own tasks.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isomer/base/buffer.h"
#include "isomer/base/context.h"
#include "isomer/base/tensor.h"
#include "isomer/base/view.h"
#include "isomer/laws/law.h"

namespace isomer {

struct AttentionOptions {
  enum class Direction { causal, bidirectional };
  enum class Kernel { exp, taylor };
  enum class Normaliser { sum, l2, rms, layer, count, gate, none };

  std::optional<double> scale = {};                        // K^-1/2
  double clamp = std::numeric_limits<double>::infinity();  // the largest logit; +inf: no clamp
  Direction direction = Direction::causal;
  Index window = 0;  // 0: all keys
  Index sinks = 0;
  Index block = 0;  // 0: none
  Kernel kernel = Kernel::exp;
  int order = 2;  // of the Taylor polynomial, at most 1000
  Normaliser normaliser = Normaliser::sum;
  std::optional<double> eps = {};  // sum 0, l2 1e-12, rms 1e-6, layer 1e-5
};

template <class T>
struct AttentionInputs {
  View<const T, 4> q, k, v;
  View<const T, 3> log_forget = {};            // absent: nothing is forgotten
  View<const T, 3> gate = {};                  // with Normaliser::gate
  View<const T, 2> bias = {};                  // absent: weights do not depend on distances
  std::span<const std::int64_t> offsets = {};  // packed sequences (B = 1, S = T)
};

/// What the forward pass leaves for the backward pass. Keep it between calls: its memory is reused.
template <class T>
struct AttentionTape {
  Buffer<T> sums;   // [B,T,H,V] before the normaliser, where o is not the same
  Buffer<T> scale;  // [B,T,H] log-sum of the weights (exp) or their sum (taylor)

  [[nodiscard]] Index bytes() const { return (sums.size() + scale.size()) * Index(sizeof(T)); }
};

template <class T>
struct AttentionOutputs {
  View<T, 4> o;
  View<T, 3> log_sum = {};           // wanted if present; exp kernel and normaliser sum
  AttentionTape<T>* tape = nullptr;  // filled if given
};

template <class T>
void attention(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, const AttentionOutputs<T>& out,
               Context& context);

/// Gradients to fill; absent ones are not computed.
template <class T>
struct AttentionGradients {
  View<T, 4> q = {}, k = {}, v = {};
  View<T, 3> log_forget = {}, gate = {};
  View<T, 2> bias = {};
};

/// `saved` is what attention() wrote for the same inputs, with its tape; without a tape the forward pass is repeated.
template <class T>
void attention_vjp(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, const AttentionOutputs<T>& saved,
                   View<const T, 4> grad_o, const AttentionGradients<T>& grad, Context& context);

/// The same law as a recurrence: with the Taylor kernel Σ_s (q·k_s)^n v_s reads a state Σ_s k_s^{⊗n} v_sᵀ of K^n × V numbers, one
/// for each n ≤ order. In double, for causal attention without clamp, window, sinks and log_forget; a proof and a yardstick,
/// not a way to compute.
template <class T>
void attention_kronecker(const AttentionInputs<T>& in, const AttentionOptions& options, const AttentionOutputs<T>& out);

/// Keys and values seen so far, for streaming: grows with the sequence, or is a ring of `window` (plus sinks).
/// Copy it to fork a stream.
template <class T>
class AttentionState {
 public:
  struct Shape {
    Index B = 1, H = 1, Gk = 1, Gv = 1, K = 1, V = 1;
  };
  AttentionState(const Shape& shape, const AttentionOptions& options);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// Tokens seen, and the keys that are kept of them.
  [[nodiscard]] Index length() const { return length_; }
  [[nodiscard]] Index kept() const;
  [[nodiscard]] Index bytes() const;
  /// Remembers one token: k [B,1,Gk,K], v [B,1,Gv,V], log_forget [B,1,H] or absent.
  void append(View<const T, 4> k, View<const T, 4> v, View<const T, 3> log_forget);

  [[nodiscard]] const T* keys(Index b, Index g) const { return keys_.data() + (b * shape_.Gk + g) * capacity_ * shape_.K; }
  [[nodiscard]] const T* values(Index b, Index g) const { return values_.data() + (b * shape_.Gv + g) * capacity_ * shape_.V; }
  /// Log, in base 2, of the decay of the kept keys from `begin` on since they were written. Needs that forgets().
  void decays(Index b, Index h, Index begin, std::span<T> logs) const;
  /// How many tokens there are behind that of a kept key.
  [[nodiscard]] Index behind(Index slot) const;

  /// How many of the kept keys matter to a next token, and these in the order of time: k [B,…,Gk,K], v [B,…,Gv,V],
  /// log_forget [B,…,H] or absent.
  [[nodiscard]] Index seen() const;
  void gather(View<T, 4> k, View<T, 4> v, View<T, 3> log_forget) const;
  [[nodiscard]] bool forgets() const { return !forgotten_.empty(); }

  /// All numbers by name behind `prefix`, for files. assign() throws Error when they are not those of a state of this shape.
  void add_to(Tensors& tensors, const std::string& prefix) const;
  void assign(const Tensors& tensors, const std::string& prefix);

 private:
  void reserve(Index slots);

  Shape shape_;
  Index window_, sinks_, length_ = 0, capacity_ = 0;
  std::vector<T, BufferAllocator<T>> keys_, values_;
  std::vector<double> forgotten_;  // [B,H] prefix sum of log_forget, empty when there never was any
  std::vector<double> written_;    // [B,H,capacity] that sum when the slot was written; +inf once forgotten exactly
};

/// One token: appends k and v to the state and reads with q [B,1,Gq,K] into out.o [B,1,H,V]. Causal only.
template <class T>
void attention_step(const AttentionInputs<T>& in, const AttentionOptions& options, AttentionState<T>& state,
                    const AttentionOutputs<T>& out, Context& context);

/// Any number of tokens that follow those of the state: a step, or attention() on what is kept and what is new. out.tape is not
/// written.
template <class T>
void attention_stream(const AttentionInputs<T>& in, const AttentionOptions& options, AttentionState<T>& state,
                      const AttentionOutputs<T>& out, Context& context);

}  // namespace isomer
