#pragma once
// Threads for calls from Python, and the memory that they work in.
#include <nanobind/nanobind.h>

#include "isomer/autograd/tape.h"
#include "isomer/base/context.h"
#include "isomer/base/watch.h"

namespace isomer::python {

/// The calling thread's own context of so many threads (0: one for each core), kept for its next call. After a fork the child,
/// in which the threads of its parent are not, makes new ones.
[[nodiscard]] Context& context_of(int threads);
/// How often this process has been forked from another since the module was loaded.
[[nodiscard]] unsigned fork_count();
/// While it lives the engine works without Python's lock, and signals are looked at now and then: Ctrl-C ends the work by an
/// exception of Python. Whoever is called by a handler of a signal meanwhile finds the engine at work and is refused.
class Running {
 public:
  /// `brief`: the work must not be ended half-way, and takes no time to speak of.
  explicit Running(bool brief = false);

 private:
  nanobind::gil_scoped_release released_;
  Watch watch_;
};
/// Calls f on a stream's state for so many tokens of each sequence, without Python's lock. A prompt that is interrupted leaves
/// the state as it was; a few tokens are not.
template <class State, class F>
auto advanced(State& state, Index tokens, F f) {
  constexpr Index kBrief = 8;
  const Running running(tokens <= kBrief);
  if (tokens <= kBrief) return f(state);
  State next = state;
  auto result = f(next);
  state = std::move(next);
  return result;
}
/// A tape on that context, without gradients, cleared.
[[nodiscard]] Tape<float>& tape_of(int threads);

}  // namespace isomer::python
