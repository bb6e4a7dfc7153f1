#pragma once
// A validated call of `attention`: sizes, defaults filled in, and the questions that every form asks. Internal to this folder.

#include <numbers>

#include "isomer/laws/attention/attention.h"
#include "isomer/laws/attention/attention_chunk.h"
#include "isomer/laws/layout.h"

namespace isomer::attention_detail {

struct Problem {
  Index B, T, S, H, K, V;
  double scale, eps;
  Index distances;  // that the bias has; 0: there is none
  AttentionOptions options;
  PoolVector<Sequence> sequences;

  [[nodiscard]] bool causal() const { return options.direction == AttentionOptions::Direction::causal; }
  [[nodiscard]] bool taylor() const { return options.kernel == AttentionOptions::Kernel::taylor; }
  [[nodiscard]] bool clamps() const { return options.clamp < std::numeric_limits<double>::infinity(); }
  /// What the kernels multiply logits by: exp takes them in base 2.
  [[nodiscard]] double logit_unit() const { return taylor() ? 1.0 : std::numbers::log2e; }
  /// Keys of a sequence of `length` tokens: packed sequences have as many keys as queries.
  [[nodiscard]] Index keys(const Sequence& s) const { return s.length + S - T; }
  /// Position of query 0 of a sequence among its keys.
  [[nodiscard]] Index first() const { return causal() ? S - T : 0; }
  /// How far before and behind a query at position p its keys lie, sinks aside.
  [[nodiscard]] Index below() const;
  [[nodiscard]] Index above() const;
  /// Where the bias of keys r tokens behind the query's own stands in its table.
  [[nodiscard]] Index place(Index r) const;
  /// What query i of a sequence with `keys` keys sees when nothing was forgotten exactly.
  [[nodiscard]] Visible visible(Index i, Index keys) const;
  /// The number of keys query i sees; a forgotten key still counts.
  [[nodiscard]] Index count(Index i, Index keys) const;
};

/// Throws Error when the call makes no sense.
template <class T>
[[nodiscard]] Problem validate(const AttentionInputs<T>& in, const AttentionOptions& options, Form form, View<const T, 4> o);

/// Prefix sums of log_forget of one head of one sequence, and what its queries see. −inf in log_forget forgets exactly: it counts
/// as 0 in the sums and hides every earlier key instead. hi + lo are the sums over ln 2; both may be null. visible [length of the
/// sequence].
template <class T>
void prepare_head(const Problem& p, const Sequence& s, Index h, View<const T, 3> log_forget, Visible* visible, T* hi, T* lo);

/// One row of the normaliser: o = N(x), where (x, l) is (weighted mean, log-sum) for exp and (weighted sum, sum) for Taylor.
template <class T>
void normalise(const Problem& p, const T* x, T l, double count, double gate, T* o);

/// Gradients of `normalise`: grad_x [V]; returns those of l and of the gate.
struct ScalarGradients {
  double l, gate;
};
template <class T>
ScalarGradients normalise_vjp(const Problem& p, const T* x, T l, double count, double gate, const T* grad_o, T* grad_x);

// The forms. Arguments have been validated; last axes are dense.
template <class T>
void forward_reference(const Problem& p, const AttentionInputs<T>& in, const AttentionOutputs<T>& out);
template <class T>
void backward_reference(const Problem& p, const AttentionInputs<T>& in, View<const T, 4> grad_o,
                        const AttentionGradients<T>& grad);
template <class T>
void forward_steps(const Problem& p, const AttentionInputs<T>& in, const AttentionOutputs<T>& out, Context& context);
/// whole: one tile for all of a sequence (Form::parallel).
enum class Tiling { blocks, whole };
template <class T>
void forward_chunk(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, const AttentionOutputs<T>& out,
                   Context& context);
template <class T>
void backward_chunk(const Problem& p, Tiling tiling, const AttentionInputs<T>& in, const AttentionOutputs<T>& saved,
                    View<const T, 4> grad_o, const AttentionGradients<T>& grad, Context& context);

}  // namespace isomer::attention_detail
