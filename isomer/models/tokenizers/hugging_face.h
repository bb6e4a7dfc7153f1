#pragma once
// The tokenizer.json of Hugging Face as a Tokenizer: added tokens, normaliser, cutter, model and decoder, each of them data. What
// a file asks for beyond them is refused; what is read gives the tokens of the package `tokenizers`, whose truncation and padding
// are left to whoever makes batches.
//
// Byte-level tokenizers without a normaliser that have a token for every byte keep any; for the others what is not UTF-8 is
// U+FFFD. Decoding gives the bytes that tokens stand for, where the package writes U+FFFD for those that are no UTF-8.
#include <memory>
#include <string_view>

#include "isomer/base/index.h"
#include "isomer/io/json.h"
#include "isomer/models/tokenizer.h"

namespace isomer {

/// `text` is what `json` was parsed from; to_json() gives it back. Throws Error for what is not understood, and for more tokens
/// than `vocabulary`.
[[nodiscard]] std::unique_ptr<Tokenizer> hugging_face_tokenizer(const Json& json, std::string_view text, Index vocabulary);

}  // namespace isomer
