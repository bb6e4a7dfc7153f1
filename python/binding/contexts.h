#pragma once
// Threads for calls from Python, and the memory that they work in.
#include "isomer/autograd/tape.h"
#include "isomer/base/context.h"

namespace isomer::python {

/// The calling thread's own context of so many threads (0: one for each core), kept for its next call. After a fork the child,
/// in which the threads of its parent are not, makes new ones.
[[nodiscard]] Context& context_of(int threads);
/// How often this process has been forked from another since the module was loaded.
[[nodiscard]] unsigned fork_count();
/// A tape on that context, without gradients, cleared.
[[nodiscard]] Tape<float>& tape_of(int threads);

}  // namespace isomer::python
