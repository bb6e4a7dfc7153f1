// Byte pairs in the tokenizer.json of Hugging Face.
#include <algorithm>

#include "isomer/io/json.h"
#include "isomer/models/byte_pairs.h"
#include "isomer/models/tokenizers/byte_tokens.h"

namespace isomer {

std::vector<unsigned char> internal::bytes_in_order() {
  std::vector<unsigned char> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<unsigned char>(byte));
  const std::vector<std::string>& characters = tokenizers::byte_characters();
  std::ranges::sort(bytes, {}, [&](unsigned char byte) { return characters[byte]; });
  return bytes;
}

std::string internal::byte_pairs_json(const BytePairParts& parts) {
  const auto token = [&](std::int64_t number) {
    return Json(tokenizers::written_bytes(parts.tokens[std::size_t(number)])).dump();
  };
  std::string added, vocabulary, merges;
  const auto next = [](std::string& list, const std::string& item) { list += (list.empty() ? "\n   " : ",\n   ") + item; };
  for (std::size_t i = 0; i < parts.special; ++i) {
    const std::string name = Json(parts.tokens[i]).dump(), id = std::to_string(i);
    next(added, R"({"id": )" + id + R"(, "content": )" + name +
                    R"(, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})");
    next(vocabulary, name + ": " + id);
  }
  for (std::size_t i = parts.special; i < parts.tokens.size(); ++i)
    next(vocabulary, token(std::int64_t(i)) + ": " + std::to_string(i));
  for (const Merge& merge : parts.merges) next(merges, "[" + token(merge.left) + ", " + token(merge.right) + "]");
  const std::string step = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  return R"({
 "version": "1.0",
 "truncation": null,
 "padding": null,
 "added_tokens": [)" +
         added + R"(],
 "normalizer": null,
 "pre_tokenizer": )" +
         step + R"(,
 "post_processor": null,
 "decoder": )" +
         step +
         R"(,
 "model": {
  "type": "BPE",
  "dropout": null,
  "unk_token": null,
  "continuing_subword_prefix": null,
  "end_of_word_suffix": null,
  "fuse_unk": false,
  "byte_fallback": false,
  "ignore_merges": false,
  "vocab": {)" +
         vocabulary + R"(},
  "merges": [)" +
         merges + "]\n }\n}\n";
}

}  // namespace isomer
