#pragma once
// Random inputs for a law, drawn by the domains of its specs. Used by check, the tests and the benches.
#include "isomer/laws/law.h"

namespace isomer {

/// The case's sizes with defaults filled in (small and odd: B 2, T 19, H 2, K 5, V 3, S = T).
[[nodiscard]] Sizes complete(const Law& law, const Case& what);

/// Required inputs, the optional ones the case names, and a random grad_… for every output that carries one.
/// Numbers are representable in float whatever the type, so that forms of both types see the same inputs.
[[nodiscard]] Tensors random_inputs(const Law& law, const Case& what, Type type, std::uint64_t seed);

}  // namespace isomer
