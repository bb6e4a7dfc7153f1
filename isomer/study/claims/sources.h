#pragma once
// The sources, one file each.
#include "isomer/study/claim.h"

namespace isomer::study {

[[nodiscard]] Source softmax_rnn();
[[nodiscard]] Source dynamical_systems();
[[nodiscard]] Source large_prompts();
/// Those of the large prompts about regression and how it is learned.
[[nodiscard]] std::vector<Claim> large_prompt_regression();
[[nodiscard]] Source in_line();
[[nodiscard]] Source metala();
[[nodiscard]] Source luna();
[[nodiscard]] Source swax();
[[nodiscard]] Source selective_rope();
[[nodiscard]] Source across();

/// Claims of a source that stand in a file of their own.
[[nodiscard]] std::vector<Claim> in_line_pictures();
[[nodiscard]] std::vector<Claim> metala_recall();
[[nodiscard]] std::vector<Claim> luna_features();
[[nodiscard]] std::vector<Claim> luna_models();
[[nodiscard]] std::vector<Claim> luna_pretrained();
[[nodiscard]] std::vector<Claim> luna_texts();
[[nodiscard]] std::vector<Claim> luna_pictures();
[[nodiscard]] std::vector<Claim> luna_tables();
[[nodiscard]] std::vector<Claim> luna_cost();
[[nodiscard]] std::vector<Claim> selective_rope_words();
[[nodiscard]] std::vector<Claim> selective_rope_models();
[[nodiscard]] std::vector<Claim> across_speed();

}  // namespace isomer::study
