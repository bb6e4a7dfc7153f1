#pragma once
// For tests of training only.
#include "isomer/train/recipe.h"

namespace isomer::tests {

/// Two layers that train in no time.
inline constexpr const char* kSmallRecipe = R"([model]
width = 16
layers = ["gla", "sliding-window"]
[mixer.all]
heads = 2
[mixer.sliding-window]
window = 8
[task]
name = "mqar"
vocabulary = 64
length = 32
pairs = 2
[train]
steps = 10
batch = 4
)";

[[nodiscard]] inline Recipe small_recipe() { return parse_recipe(parse_toml(kSmallRecipe, "small.toml")); }

}  // namespace isomer::tests
