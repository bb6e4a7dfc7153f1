#include "isomer/models/tokenizers/given_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "isomer/base/error.h"
#include "isomer/io/json.h"
#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/byte_tokens.h"
#include "isomer/models/tokenizers/hugging_face.h"
#include "isomer/models/tokenizers/patterns.h"
#include "isomer/models/tokenizers/vocabulary.h"

namespace isomer {

namespace {
constexpr const char* kGiven = "tokenizer";
constexpr std::string_view kMark = "▁";
// Of llama2.c: behind the unknown token and the two ends of a text.
constexpr Index kFirstByte = 3;

/// How a text is cut, by the names that tokenizer.ggml.pre has for it.
struct WordRule {
  std::string_view name;
  std::string_view pattern;  // empty: GPT-2's
  bool digits = false;       // are digits single pieces?
  bool whole = false;        // is a word that is a piece not cut further?
  bool composed = false;     // is its text brought into the normal form NFC?
};
constexpr std::array kRules{
    WordRule{"default", ""},
    WordRule{"gpt-2", ""},
    WordRule{"mpt", ""},
    WordRule{"olmo", ""},
    WordRule{"phi-2", ""},
    WordRule{"smollm", "", true},
    WordRule{"starcoder", "", true},
    WordRule{"refact", "", true},
    WordRule{"command-r", "", true},
    WordRule{"llama-bpe", tokenizers::kLlama3Words, false, true},
    WordRule{"llama-v3", tokenizers::kLlama3Words, false, true},
    WordRule{"llama3", tokenizers::kLlama3Words, false, true},
    WordRule{"qwen2", tokenizers::kQwen2Words, false, false, true},
    WordRule{"deepseek-r1-qwen", tokenizers::kQwen2Words, false, false, true},
    WordRule{"stablelm2", tokenizers::kQwen2Words},
    WordRule{"qwen35", tokenizers::kQwen35Words, false, false, true},
};

std::string quoted(std::string_view text) { return Json(text).dump(); }

PieceType type_of(const std::vector<std::int32_t>& types, std::size_t i) {
  return types.empty() ? PieceType::normal : PieceType(types[i]);
}

void check(const std::vector<std::string>& pieces, const std::vector<std::int32_t>& types,
           std::initializer_list<std::optional<std::int64_t>> around) {
  require(std::int64_t(pieces.size()) <= tokenizers::kMostTokens, kGiven, "expected at most ", tokenizers::kMostTokens,
          " pieces, got ", pieces.size());
  require(types.empty() || types.size() == pieces.size(), kGiven, "expected ", pieces.size(), " types, one a piece, got ",
          types.size());
  for (const auto& token : around)
    require(!token || (*token >= 0 && *token < std::int64_t(pieces.size())), kGiven, "expected tokens below ", pieces.size(),
            " around a text, got ", token.value_or(0));
}

/// The pieces of a list, separated by commas.
class List {
 public:
  void add(std::string_view item) {
    if (!text_.empty()) text_ += ",\n";
    text_ += item;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string vocabulary_json(const std::vector<std::string>& pieces) {
  List list;
  for (std::size_t i = 0; i < pieces.size(); ++i) list.add(quoted(pieces[i]) + ": " + std::to_string(i));
  return list.text();
}

std::string added_json(const std::vector<std::string>& pieces, const std::vector<std::int32_t>& types) {
  List list;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const PieceType type = type_of(types, i);
    if (pieces[i].empty() || (type != PieceType::unknown && type != PieceType::control && type != PieceType::user_defined))
      continue;
    list.add(R"({"id": )" + std::to_string(i) + R"(, "content": )" + quoted(pieces[i]) +
             R"(, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": )" +
             (type == PieceType::user_defined ? "false}" : "true}"));
  }
  return list.text();
}

/// The tokens around a text, and around two of them.
std::string template_json(const std::vector<std::string>& pieces, const std::optional<std::int64_t>& begin,
                          const std::optional<std::int64_t>& end) {
  if (!begin && !end) return "null";
  const auto special = [](std::string_view id, int type) {
    return R"({"SpecialToken": {"id": )" + quoted(id) + R"(, "type_id": )" + std::to_string(type) + "}}";
  };
  const auto one = [&](const char* name, int type, List& list) {
    if (begin) list.add(special("begin", type));
    list.add(std::string(R"({"Sequence": {"id": ")") + name + R"(", "type_id": )" + std::to_string(type) + "}}");
    if (end) list.add(special("end", type));
  };
  List single, pair, known;
  one("A", 0, single);
  one("A", 0, pair);
  one("B", 1, pair);
  const auto know = [&](std::string_view id, std::int64_t token) {
    known.add(quoted(id) + R"(: {"id": )" + quoted(id) + R"(, "ids": [)" + std::to_string(token) + R"(], "tokens": [)" +
              quoted(pieces[std::size_t(token)]) + "]}");
  };
  if (begin) know("begin", *begin);
  if (end) know("end", *end);
  return R"({"type": "TemplateProcessing", "single": [)" + single.text() + R"(], "pair": [)" + pair.text() +
         R"(], "special_tokens": {)" + known.text() + "}}";
}

struct Texts {
  std::string added, normalizer, cutter, around, decoder, model, vocabulary, merges;
};
std::unique_ptr<Tokenizer> made(const Texts& texts, std::size_t pieces) {
  const std::string json = R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [)" + texts.added +
                           R"(], "normalizer": )" + texts.normalizer + R"(, "pre_tokenizer": )" + texts.cutter +
                           R"(, "post_processor": )" + texts.around + R"(, "decoder": )" + texts.decoder +
                           R"(, "model": {"type": "BPE", "dropout": null, )" + texts.model + R"("vocab": {)" + texts.vocabulary +
                           R"(}, "merges": [)" + texts.merges + "]}}\n";
  return hugging_face_tokenizer(Json::parse(json, kGiven), json, Index(pieces));
}

std::string cutter_json(const WordRule& rule) {
  const std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": )";
  std::string before;
  if (rule.digits) before = R"({"type": "Digits", "individual_digits": true})";
  if (!rule.pattern.empty())
    before =
        R"({"type": "Split", "pattern": {"Regex": )" + quoted(rule.pattern) + R"(}, "behavior": "Isolated", "invert": false})";
  if (before.empty()) return bytes + "true}";
  return R"({"type": "Sequence", "pretokenizers": [)" + before + ", " + bytes + (rule.pattern.empty() ? "true" : "false") + "}]}";
}

/// Every way to make a piece of two others, the best score first.
std::string merges_by_score(const ScoredPieces& parts) {
  struct Pair {
    float score;
    std::string_view left, right;
  };
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < parts.pieces.size(); ++i) {
    const PieceType type = type_of(parts.types, i);
    if (type == PieceType::normal || type == PieceType::user_defined) known.emplace(parts.pieces[i], i);
  }
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < parts.pieces.size(); ++i) {
    const std::string_view piece = parts.pieces[i];
    if (const auto found = known.find(piece); found == known.end() || found->second != i || tokenizers::byte_of(piece) >= 0)
      continue;
    require(std::isfinite(parts.scores[i]), kGiven, "expected scores that are finite, got ", parts.scores[i]);
    for (std::size_t at = 0; at < piece.size();) {
      at += first_code_point(piece.substr(at)).bytes;
      if (at < piece.size() && known.contains(piece.substr(0, at)) && known.contains(piece.substr(at)))
        pairs.push_back({parts.scores[i], piece.substr(0, at), piece.substr(at)});
    }
  }
  std::ranges::stable_sort(pairs, std::greater<>(), &Pair::score);
  List list;
  for (const Pair& pair : pairs) list.add("[" + quoted(pair.left) + ", " + quoted(pair.right) + "]");
  return list.text();
}
}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of_merges(const MergedPieces& parts) {
  check(parts.pieces, parts.types, {parts.begin, parts.end});
  const auto rule = std::ranges::find(kRules, std::string_view(parts.words), &WordRule::name);
  require(rule != kRules.end(), "tokenizer.ggml.pre",
          "expected a way to cut words that is known (default, gpt-2, smollm, llama-bpe, qwen2, …), got ", parts.words);
  List merges;
  for (const std::string& merge : parts.merges) merges.add(quoted(merge));
  return made({.added = added_json(parts.pieces, parts.types),
               .normalizer = rule->composed ? R"({"type": "NFC"})" : "null",
               .cutter = cutter_json(*rule),
               .around = template_json(parts.pieces, parts.begin, parts.end),
               .decoder = R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})",
               .model = rule->whole ? R"("ignore_merges": true, )" : "",
               .vocabulary = vocabulary_json(parts.pieces),
               .merges = merges.text()},
              parts.pieces.size());
}

std::unique_ptr<Tokenizer> tokenizer_of_scores(const ScoredPieces& parts) {
  check(parts.pieces, parts.types, {parts.begin, parts.end});
  require(parts.scores.size() == parts.pieces.size(), kGiven, "expected ", parts.pieces.size(), " scores, one a piece, got ",
          parts.scores.size());
  std::string unknown;
  for (std::size_t i = 0; i < parts.pieces.size() && unknown.empty(); ++i)
    if (type_of(parts.types, i) == PieceType::unknown) unknown = R"("unk_token": )" + quoted(parts.pieces[i]) + ", ";
  const std::string to_mark = R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";
  const std::string from_mark =
      R"({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"})";
  const std::string strip = R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})";
  return made(
      {.added = added_json(parts.pieces, parts.types),
       .normalizer = !parts.space_in_front
                         ? to_mark
                         : R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, )" + to_mark + "]}",
       .cutter = "null",
       .around = template_json(parts.pieces, parts.begin, parts.end),
       .decoder = R"({"type": "Sequence", "decoders": [)" + from_mark + (parts.space_in_front ? strip : "") + "]}",
       .model = unknown + R"("fuse_unk": true, "byte_fallback": true, )",
       .vocabulary = vocabulary_json(parts.pieces),
       .merges = merges_by_score(parts)},
      parts.pieces.size());
}

std::unique_ptr<Tokenizer> llama2c_tokenizer(std::string_view file, const std::string& name, Index vocabulary) {
  const auto take = [&](std::size_t size) {
    if (size > file.size())
      throw Error(name + ": expected " + std::to_string(vocabulary) + " pieces, got a file that ends before");
    const std::string_view bytes = file.substr(0, size);
    file.remove_prefix(size);
    return bytes;
  };
  ScoredPieces parts{.pieces = {}, .scores = {}};
  (void)take(4);  // the longest piece
  for (Index i = 0; i < vocabulary; ++i) {
    float score = 0;
    std::int32_t size = 0;
    std::memcpy(&score, take(4).data(), 4);
    std::memcpy(&size, take(4).data(), 4);
    const std::string_view bytes = take(size < 0 ? file.size() + 1 : std::size_t(size));
    // It has spaces as they are, lines around the two that stand for the ends of a text, and bytes in several ways.
    const bool is_byte = i >= kFirstByte && i < kFirstByte + 256;
    std::string piece = i == 1 ? "<s>" : i == 2 ? "</s>" : is_byte ? tokenizers::byte_piece(unsigned(i - kFirstByte)) : "";
    for (const char byte : piece.empty() ? bytes : std::string_view()) piece += byte == ' ' ? kMark : std::string_view(&byte, 1);
    const PieceType type = i == 0           ? PieceType::unknown
                           : i < kFirstByte ? PieceType::control
                           : is_byte        ? PieceType::byte
                                            : PieceType::normal;
    parts.pieces.push_back(std::move(piece));
    parts.scores.push_back(score);
    parts.types.push_back(std::int32_t(type));
  }
  if (vocabulary > 1) parts.begin = 1;
  return tokenizer_of_scores(parts);
}

}  // namespace isomer
