#pragma once
// An eager tape: every op computes its value at once and leaves a closure that carries its gradient back.
//
//   Tape<float> tape(context);
//   Var<float> y = ops::linear(tape, x, weight);      // ops are functions: forward and gradient stand side by side
//   tape.backward(y);                                 // fills the gradients of every parameter that y depends on
//   tape.clear();                                     // gives all memory back; the next step allocates nothing
//
// Values are [B, T, H, D] (a matrix: [1, 1, rows, columns]) with any strides; views of one value share its memory and gradient.
// Memory of values and closures belongs to the tape and lives until clear(); a gradient's is reused as soon as its op has run
// backwards, but for those of inputs and parameters. A tape serves one thread; ops run on its Context. Tape(context, Record::no)
// only computes: for evaluation and streaming.
#include <atomic>
#include <deque>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "isomer/autograd/profile.h"
#include "isomer/autograd/var.h"
#include "isomer/base/context.h"
#include "isomer/base/restore.h"
#include "isomer/laws/tape.h"

namespace isomer {

enum class Record { yes, no };

template <class T>
class Tape {
 public:
  explicit Tape(Context& context, Record record = Record::yes) : context_(context), record_(record) { scope_.emplace(*memory_); }

  [[nodiscard]] Context& context() { return context_; }
  [[nodiscard]] bool recording() const { return record_ == Record::yes; }
  /// Sums the seconds of kernels from now on; null stops it. The profile stays the caller's.
  void profile(Profile* profile) { profile_ = profile; }
  /// Runs f, whose seconds count as `kind` if there is a profile.
  template <class F>
  void timed(Profile::Kind kind, F f) {
    if (profile_ == nullptr) return f();
    profile_->time(kind, f);
  }

  // For ops, forward.

  /// A new uninitialised value; it wants a gradient when one of `inputs` does.
  [[nodiscard]] Var<T> make(const Shape4& shape, std::span<const Var<T>> inputs);
  [[nodiscard]] Var<T> make(const Shape4& shape, std::initializer_list<Var<T>> inputs) {
    return make(shape, std::span(inputs.begin(), inputs.size()));
  }
  /// The same memory in another shape or with other strides.
  [[nodiscard]] static Var<T> alias(Var<T> of, View<T, 4> view) { return {view, of.slot}; }
  /// A part of `of`: its gradients are added to that of the whole, which starts as zeros.
  [[nodiscard]] static Var<T> part(Var<T> of, View<T, 4> view) {
    // A parameter may be shared by threads, which all write the same.
    if (of.slot != nullptr && view.size() != of.value.size())
      std::atomic_ref(of.slot->partial).store(true, std::memory_order_relaxed);
    return alias(of, view);
  }
  /// A part of `of` with a gradient of its own; for split().
  [[nodiscard]] Var<T> piece(Var<T> of, View<T, 4> view);
  /// Memory that lives as long as the tape's values.
  template <class U>
  [[nodiscard]] U* keep(Index count) {
    return memory_->template take<U>(count);
  }
  /// What a law leaves for its backward pass; its memory is kept over clear(). Null when nothing is recorded.
  [[nodiscard]] LawTape* law_tape();
  /// backward() calls f(tape) when a gradient has arrived at one of `outputs`. f holds plain values only.
  template <class F>
  void record(std::span<const Var<T>> outputs, F f);
  template <class F>
  void record(std::initializer_list<Var<T>> outputs, F f) {
    record(std::span(outputs.begin(), outputs.size()), f);
  }

  // For ops, backward.

  /// The gradient that arrived at an output; zeros when none did.
  [[nodiscard]] View<const T, 4> arrived(Var<T> output);
  /// Where to write the gradient of an input. Counts as written.
  [[nodiscard]] GradientTarget<T> target(Var<T> input);
  /// The pieces of `whole` have all arrived: together they are its gradient.
  void covered(Var<T> whole) { whole.slot->written = true; }

  // For users.

  /// An input: `data` stays the caller's. Wants a gradient if asked.
  [[nodiscard]] Var<T> input(View<T, 4> data, bool wanted = false);
  /// Runs back from `loss`, whose gradient is 1 (every element), or from outputs whose gradients were set by seed().
  void backward(Var<T> loss);
  void backward();
  /// Sets the gradient of an output by hand.
  [[nodiscard]] View<T, 4> seed(Var<T> output);
  /// Forgets all values, closures and gradients but those of parameters.
  void clear();

  /// Runs f without recording.
  template <class F>
  auto without_recording(F f) {
    const Restore<Record> restore(record_, Record::no);
    return f();
  }

  // For recomputation.

  /// What is made and recorded while it lives is given back when it ends.
  class Scope {
   public:
    explicit Scope(Tape& tape)
        : memory_(tape.memory_, &tape.memories_[tape.memory_ == &tape.memories_[0] ? 1 : 0]),
          scope_(*tape.memory_),
          law_tapes_(tape.law_tapes_used_, tape.law_tapes_used_) {}
    /// New values are the tape's own again; those made in the scope are still there.
    void leave() { memory_.now(); }

   private:
    Restore<Workspace*> memory_;
    Workspace::Scope scope_;
    Restore<std::size_t> law_tapes_;
  };
  struct Mark {
    std::size_t closures;
  };
  [[nodiscard]] Mark mark() const { return {closures_.size()}; }
  /// Runs and forgets the closures recorded since the mark.
  void backward_to(Mark mark);

  /// All that the tape holds, used or not.
  [[nodiscard]] Index bytes() const;

 private:
  using Slot = internal::Slot<T>;
  struct Closure {
    void* self;
    void (*run)(void*, Tape&);
    Slot* const* outputs;
    Index count;
  };
  [[nodiscard]] Slot* slot(const Slot& from);
  [[nodiscard]] T* gradient_memory(Slot& slot);
  [[nodiscard]] View<T, 4> gradient_view(Var<T> var);
  [[nodiscard]] T* take_gradient(Index size);
  void give_back_gradient(Slot& slot);
  void run(const Closure& closure);

  Context& context_;
  Record record_;
  Profile* profile_ = nullptr;
  std::array<Workspace, 2> memories_;  // the second for what is made in a scope
  Workspace* memory_ = &memories_[0];
  std::optional<Workspace::Scope> scope_;
  std::vector<Closure> closures_;
  std::deque<LawTape> law_tapes_;
  std::size_t law_tapes_used_ = 0;
  // Gradients live only until their op has run, so a few blocks serve all of them, in this step and the next.
  struct Block {
    Buffer<T> memory;
    bool taken = false;
  };
  std::vector<Block> blocks_;
};

template <class T>
template <class F>
void Tape<T>::record(std::span<const Var<T>> outputs, F f) {
  static_assert(std::is_trivially_destructible_v<F>, "a closure holds plain values: nothing destroys it");
  if (!recording()) return;
  Slot** slots = keep<Slot*>(Index(outputs.size()));
  Index count = 0;
  for (const Var<T>& output : outputs)
    if (output.wanted()) slots[count++] = output.slot;
  if (count == 0) return;
  F* self = new (keep<F>(1)) F(f);
  closures_.push_back({self, [](void* closure, Tape& tape) { (*static_cast<F*>(closure))(tape); }, slots, count});
}

extern template class Tape<float>;
extern template class Tape<double>;

}  // namespace isomer
