#include "isomer/models/tokenizers/decoders.h"

#include <array>
#include <utility>

#include "isomer/models/tokenizers/byte_tokens.h"
#include "isomer/models/tokenizers/cutters.h"
#include "isomer/models/tokenizers/json_parts.h"

namespace isomer::tokenizers {

namespace {
std::string replaced(std::string text, std::string_view from, std::string_view by) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + by.size()))
    text.replace(at, from.size(), by);
  return text;
}

std::string cleaned(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules{{{" .", "."},
                                                                                  {" ?", "?"},
                                                                                  {" !", "!"},
                                                                                  {" ,", ","},
                                                                                  {" ' ", "'"},
                                                                                  {" n't", "n't"},
                                                                                  {" 'm", "'m"},
                                                                                  {" do not", " don't"},
                                                                                  {" 's", "'s"},
                                                                                  {" 've", "'ve"},
                                                                                  {" 're", "'re"}}};
  if (text.find(' ') == std::string::npos) return text;
  for (const auto& [from, by] : kRules) text = replaced(std::move(text), from, by);
  return text;
}

std::string stripped(std::string text, const StripDecode& step) {
  for (std::size_t i = 0; i < step.start && text.starts_with(step.content); ++i) text.erase(0, step.content.size());
  for (std::size_t i = 0; i < step.stop && text.ends_with(step.content); ++i) text.resize(text.size() - step.content.size());
  return text;
}

struct Decode {
  std::string text;
  bool first;  // is the token the first of a text?

  void operator()(const BytesDecode& /*step*/) {
    std::string bytes;
    append_written(bytes, text);
    text = std::move(bytes);
  }
  void operator()(const FallbackDecode& /*step*/) {
    if (const int byte = byte_of(text); byte >= 0) text = char(byte);
  }
  void operator()(const WordPieceDecode& step) {
    if (!first) {
      if (text.starts_with(step.prefix))
        text.erase(0, step.prefix.size());
      else
        text.insert(0, " ");
    }
    if (step.cleanup) text = cleaned(std::move(text));
  }
  void operator()(const MetaspaceDecode& step) { text = replaced(std::move(text), step.space, first && step.first ? "" : " "); }
  void operator()(const ReplaceDecode& step) {
    std::string result;
    for (const Match& match : step.pattern.matches(text)) {
      const std::string_view part = std::string_view(text).substr(match.begin, match.end - match.begin);
      result += match.found ? std::string_view(step.by) : part;
    }
    text = std::move(result);
  }
  void operator()(const StripDecode& step) {
    if (!step.whole) text = stripped(std::move(text), step);
  }
  void operator()(const SpacesDecode& /*step*/) {
    if (!first) text.insert(0, " ");
  }
};

std::size_t count_of(const Json& json, std::string_view key) {
  const Json* found = member(json, key);
  const std::int64_t count = found == nullptr ? 0 : found->integer();
  require(count >= 0, "decoder", "expected at least 0 characters to strip, got ", count);
  return std::size_t(count);
}

DecodeStep decode_step_from(const Json& json, bool fused) {
  const std::string kind = kind_of(json);
  if (kind == "ByteLevel") return BytesDecode{};
  if (kind == "ByteFallback") return FallbackDecode{};
  if (kind == "WordPiece") return WordPieceDecode{text_of(json, "prefix", "##"), flag(json, "cleanup", true)};
  if (kind == "Metaspace") {
    const MetaspaceCut step = metaspace_from(json);
    return MetaspaceDecode{step.space, step.prepend != MetaspaceCut::Prepend::never};
  }
  if (kind == "Replace") return ReplaceDecode{Pattern(json.at("pattern")), json.at("content").text()};
  if (kind == "Strip") {
    StripDecode step{json.at("content").text(), count_of(json, "start"), count_of(json, "stop"), fused};
    require(!step.content.empty(), "decoder", "expected a character to strip, got none");
    require(!fused || step.stop == 0, "decoder", "expected nothing to strip at the end of a text, got ", step.stop,
            " characters");
    return step;
  }
  fail("decoder", "expected ByteLevel, ByteFallback, WordPiece, Metaspace, Replace, Strip or Fuse, got ", kind);
}
}  // namespace

std::vector<DecodeStep> decoders_from(const Json* json) {
  std::vector<DecodeStep> steps;
  if (json == nullptr || json->is_null()) return {SpacesDecode{}};
  bool fused = false;
  each_step(*json, "decoders", [&](const Json& step) {
    const bool fuse = kind_of(step) == "Fuse";
    require(!fused || fuse || kind_of(step) == "Strip", "decoder", "expected only Strip behind Fuse, got ", kind_of(step));
    fused = fused || fuse;
    if (!fuse) steps.push_back(decode_step_from(step, fused));
  });
  return steps;
}

std::string decoded(std::span<const DecodeStep> steps, std::span<const std::string_view> pieces, bool first) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Decode token{std::string(pieces[i]), first && i == 0};
    for (const DecodeStep& step : steps) std::visit(token, step);
    text += token.text;
  }
  if (first)
    for (const DecodeStep& step : steps)
      if (const auto* strip = std::get_if<StripDecode>(&step); strip != nullptr && strip->whole)
        text = stripped(std::move(text), *strip);
  return text;
}

}  // namespace isomer::tokenizers
