#pragma once
// What a page shows of mixers without the program behind it: everything at once, on the words of a sentence (looks.h has the same
// by parts).
//
//   const Json view = mixer_data({.preset = "gla", .words = words_of("the cat sat on the mat")}, context);
#include "isomer/explore/subject.h"
#include "isomer/io/json.h"

namespace isomer {

/// {"preset", "law", "source", "summary", "equations", "options", "words", "heads", "influence"}. A head is a view, its curves
/// (looks.h) and its `eigenvalues` at the last token. Row c of `influence`: how far each output moves, over the mean size of
/// outputs, when token c becomes another word. Throws Error as fresh_subject() does.
[[nodiscard]] Json mixer_data(const FreshQuestion& question, Context& context);

/// Of every causal preset.
[[nodiscard]] Json all_mixers(const std::vector<std::string>& words, Context& context);

}  // namespace isomer
