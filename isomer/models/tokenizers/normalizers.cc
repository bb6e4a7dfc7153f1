#include "isomer/models/tokenizers/normalizers.h"

#include "isomer/models/tokenizers/json_parts.h"

namespace isomer::tokenizers {

namespace {
// No step of a real tokenizer makes a text longer than this, and a list of steps may double it again and again.
constexpr std::size_t kMostGrowth = 64, kMostBegin = 4096;

/// Every character, through add(result, character).
template <class F>
std::string each_character(std::string_view text, F&& add) {
  std::string result;
  result.reserve(text.size());
  for (CodePoint c; !text.empty(); text.remove_prefix(c.bytes)) {
    c = first_code_point(text);
    add(result, c.value);
  }
  return result;
}

bool is_chinese(char32_t c) {
  if (c < 0x3400) return false;
  // As the code of BERT has them; Unicode has others, too.
  constexpr char32_t kRanges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
                                     {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  for (const auto& [first, last] : kRanges)
    if (c >= first && c <= last) return true;
  return false;
}

void add_clean(std::string& to, char32_t c, const BertText& step) {
  if (step.clean) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
    if (c == 0 || c == kReplacement || is_control(c)) return;
    if (is_white_space(c)) c = ' ';
  }
  if (step.chinese && is_chinese(c)) {
    to += ' ';
    append_utf8(to, c);
    to += ' ';
  } else {
    append_utf8(to, c);
  }
}

struct Apply {
  std::string& text;

  void operator()(NormalForm form) const { text = normal_form(text, form); }
  void operator()(const LowerCase& /*step*/) const { text = each_character(text, append_lower_case); }
  void operator()(const StripAccents& /*step*/) const {
    text = each_character(text, [](std::string& to, char32_t c) {
      if (!is_mark(c)) append_utf8(to, c);
    });
  }
  void operator()(const Strip& step) const {
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = first_code_point(std::string_view(text).substr(at));
      if (!is_white_space(c.value)) begin = std::min(begin, at), end = at + c.bytes;
      at += c.bytes;
    }
    if (!step.left) begin = 0;
    if (!step.right) end = text.size();
    text = begin < end ? text.substr(begin, end - begin) : std::string();
  }
  void operator()(const Prepend& step) const {
    if (!text.empty()) text.insert(0, step.text);
  }
  void operator()(const Replace& step) const {
    std::string result;
    for (const Match& match : step.pattern.matches(text)) {
      const std::string_view part = std::string_view(text).substr(match.begin, match.end - match.begin);
      result += match.found ? std::string_view(step.by) : part;
    }
    text = std::move(result);
  }
  void operator()(const BertText& step) const {
    text = each_character(text, [&](std::string& to, char32_t c) { add_clean(to, c, step); });
    if (step.accents) {
      text = each_character(normal_form(text, NormalForm::nfd), [](std::string& to, char32_t c) {
        if (!is_nonspacing_mark(c)) append_utf8(to, c);
      });
    }
    if (step.lower) text = each_character(text, append_lower_case);
  }
  void operator()(const CharacterMap& step) const { text = step.mapped(text); }
};

NormalStep normal_step_from(const Json& json) {
  const std::string kind = kind_of(json);
  if (kind == "NFC") return NormalForm::nfc;
  if (kind == "NFD") return NormalForm::nfd;
  if (kind == "NFKC") return NormalForm::nfkc;
  if (kind == "NFKD") return NormalForm::nfkd;
  if (kind == "Lowercase") return LowerCase{};
  if (kind == "StripAccents") return StripAccents{};
  if (kind == "Strip") return Strip{flag(json, "strip_left", true), flag(json, "strip_right", true)};
  if (kind == "Prepend") return Prepend{json.at("prepend").text()};
  if (kind == "Replace") return Replace{Pattern(json.at("pattern")), json.at("content").text()};
  if (kind == "Precompiled") return CharacterMap(text_of(json, "precompiled_charsmap", ""));
  if (kind == "BertNormalizer") {
    const bool lower = flag(json, "lowercase", true);
    return BertText{flag(json, "clean_text", true), flag(json, "handle_chinese_chars", true), flag(json, "strip_accents", lower),
                    lower};
  }
  fail("normalizer",
       "expected NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled or BertNormalizer, got ",
       kind);
}
}  // namespace

std::vector<NormalStep> normalizers_from(const Json* json) {
  std::vector<NormalStep> steps;
  if (json != nullptr && !json->is_null())
    each_step(*json, "normalizers", [&](const Json& step) { steps.push_back(normal_step_from(step)); });
  return steps;
}

std::string normalized(std::span<const NormalStep> steps, std::string text) {
  const std::size_t most = text.size() * kMostGrowth + kMostBegin;
  for (const NormalStep& step : steps) {
    std::visit(Apply{text}, step);
    require(text.size() <= most, "normalizer", "expected steps that make a text at most ", kMostGrowth, " times as long, got ",
            text.size(), " bytes");
  }
  return text;
}

}  // namespace isomer::tokenizers
