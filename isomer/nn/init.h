#pragma once
// Draws the numbers that parameters start with (what each kind means: mixers/parameter_init.h).
//
//   initialise(parameters, seed);
//
// A parameter's numbers depend on the seed and its name alone: adding one changes no other.
#include <cstdint>
#include <functional>
#include <span>

#include "isomer/base/rng.h"
#include "isomer/nn/parameters.h"

namespace isomer {

/// Every parameter of the store, by its own spec; or those alone whose names `which` picks.
template <class T>
void initialise(Parameters<T>& parameters, std::uint64_t seed, const std::function<bool(const std::string& name)>& which = {});

/// One array of this shape. Throws Error when a list has neither one number for each element nor one for each head.
[[nodiscard]] std::vector<double> initial_values(const graph::Init& init, std::span<const Index> shape, Rng rng);

}  // namespace isomer
