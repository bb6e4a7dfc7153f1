#pragma once
// What the page shows of a mixer: the Dynamical Systems view of every head on the words of a sentence, as the mixer starts.
//
//   const Json view = mixer_data({.preset = "gla", .words = words_of("the cat sat on the mat")}, context);
//
// A word is a random vector that depends on the word alone, so that the same word is the same token for every mixer. Weights are
// those that a layer starts with, but for queries and keys, which start near the input itself (like words attend to each other),
// and an output that starts at zero.
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/context.h"
#include "isomer/base/settings.h"
#include "isomer/io/json.h"

namespace isomer {

struct MixerQuestion {
  std::string preset;
  Settings settings = {};
  std::vector<std::string> words = {};
  Index width = 128;
};

/// {"preset", "law", "source", "summary", "equations", "options", "words", "heads", "influence"}. A head has its effective
/// attention `matrix` (row t: its weights on tokens 0 … t), for each token the least and largest `sizes` and `angles` of
/// eigenvalues and the `norm` and stable `rank` of the state, and its memory `horizon`. Row c of `influence`: how far each output
/// moves, over the mean size of outputs, when token c becomes another word. Numbers have four digits. Throws Error for a mixer
/// that is not causal, or what build_mixer refuses.
[[nodiscard]] Json mixer_data(const MixerQuestion& question, Context& context);

/// Of every causal preset.
[[nodiscard]] Json all_mixers(const std::vector<std::string>& words, Context& context);

[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

}  // namespace isomer
