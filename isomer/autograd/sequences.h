#pragma once
// How the tokens [B, T] of a pass are sequences, and what ops along them carry from one pass to the next.
//
//   Var<float> y = ops::shift(tape, x);                              // every row is a sequence
//   y = ops::shift(tape, x, {.state = &state});                      // they go on: state [B, 1, H, D] is read and replaced
//   const std::vector<std::int64_t> offsets{0, 5, 5, 9};             // the only row packs three: tokens 0 – 4, none, 5 – 8
//   y = ops::shift(tape, x, {.sequences = {.offsets = offsets}});
#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "isomer/autograd/tape.h"
#include "isomer/base/error.h"
#include "isomer/laws/layout.h"

namespace isomer {

/// The spans are the caller's and live until the backward pass.
struct Sequences {
  std::span<const std::int64_t> offsets = {};    // [n + 1], from 0 to T and never decreasing; empty: n = B rows of T tokens
  std::span<const std::int64_t> positions = {};  // [n]: tokens before the first of each; empty: none

  [[nodiscard]] Index count(Index B) const { return offsets.empty() ? B : Index(offsets.size()) - 1; }
  [[nodiscard]] Index position(Index i) const { return positions.empty() ? 0 : Index(positions[std::size_t(i)]); }
  /// Do all stand at one position?
  [[nodiscard]] bool aligned() const { return std::ranges::adjacent_find(positions, std::not_equal_to()) == positions.end(); }
};

/// Tokens [rows, length] from (row, first) on: `count` sequences from `sequence` on that one call of a kernel takes.
struct SequencePart {
  Index row, rows, first, length;
  Index sequence, count;
  Index position;  // of the first token of each

  template <class U>
  [[nodiscard]] View<U, 4> tokens(View<U, 4> x) const {
    return x.present() ? slice(slice(x, 0, row, rows), 1, first, length) : x;
  }
  /// Of a state [n, …].
  template <class U, int R>
  [[nodiscard]] View<U, R> states(View<U, R> x) const {
    return x.present() ? slice(x, 0, sequence, count) : x;
  }
};

/// Does an op depend on where in its sequence a token stands?
enum class Placed { no, yes };

/// Calls f(part) for tokens [B, T]: for all at once where a kernel can take them so, else for one sequence after the other.
/// Throws Error for offsets or positions that are none.
template <class F>
void each_part(const char* op, const Sequences& all, Index B, Index T, Placed placed, F f) {
  const Index n = all.count(B);
  require(all.positions.empty() || Index(all.positions.size()) == n, op, "expected the positions of ", n, " sequences, got ",
          all.positions.size());
  if (all.offsets.empty() && (placed == Placed::no || all.aligned())) {
    f(SequencePart{0, B, 0, T, 0, n, n == 0 ? 0 : all.position(0)});
    return;
  }
  Index i = 0;
  for (const Sequence& one : sequences(op, B, T, all.offsets)) {
    f(SequencePart{one.batch, 1, one.first, one.length, i, 1, all.position(i)});
    ++i;
  }
}

/// What an op along tokens has beside them.
template <class T>
struct Along {
  Sequences sequences = {};
  /// If given: what came before, [n, 1, …] (absent: as at the start of a sequence), and on return what the next tokens find. That
  /// is in the same memory unless a gradient goes through it; then it is a new value of the tape.
  Var<T>* state = nullptr;
};

/// The final state of an op that was given one: in place of the initial one, or a new value if a gradient goes through it.
template <class T>
[[nodiscard]] Var<T> final_state(Tape<T>& tape, Var<T> initial, std::initializer_list<Var<T>> inputs) {
  const bool through = tape.recording() && (initial.wanted() || std::ranges::any_of(inputs, &Var<T>::wanted));
  if (!through) return initial;
  const Var<T> made = tape.make(initial.shape(), inputs);
  made.slot->wanted = true;
  return made;
}

/// [n, 1, a, b] as [n, a, b].
template <class T>
[[nodiscard]] View<T, 3> state_view(View<T, 4> x) {
  return {x.data, {x.shape[0], x.shape[2], x.shape[3]}, {x.stride[0], x.stride[2], x.stride[3]}};
}
template <class T>
[[nodiscard]] Var<T> state_var(View<T, 3> x) {
  return {{x.data, {x.shape[0], 1, x.shape[1], x.shape[2]}, {x.stride[0], x.stride[0], x.stride[1], x.stride[2]}}};
}

}  // namespace isomer
