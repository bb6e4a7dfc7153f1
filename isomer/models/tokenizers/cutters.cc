#include "isomer/models/tokenizers/cutters.h"

#include "isomer/io/unicode.h"
#include "isomer/models/tokenizers/json_parts.h"

namespace isomer::tokenizers {

namespace {
/// Characters that a rule matches, one by one or in runs, and what stands between them.
template <class Rule>
std::vector<Match> character_matches(std::string_view text, bool runs, Rule&& rule) {
  std::vector<Match> all;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    const bool found = rule(c.value);
    const bool joins = !all.empty() && all.back().found == found && (runs || !found);
    if (joins)
      all.back().end = at + c.bytes;
    else
      all.push_back({at, at + c.bytes, found});
    at += c.bytes;
  }
  return all;
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return is_punctuation(c);
}

/// 0: white space, 1: words, 2: the rest.
int word_kind(char32_t c) { return is_white_space(c) ? 0 : is_word(c) ? 1 : 2; }

/// \w+|[^\w\s]+
std::vector<Match> word_matches(std::string_view text) {
  std::vector<Match> all;
  int last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    const int kind = word_kind(c.value);
    if (kind != 0 && !all.empty() && kind == last)
      all.back().end = at + c.bytes;
    else if (kind != 0)
      all.push_back({at, at + c.bytes, false});
    last = kind;
    at += c.bytes;
  }
  return all;
}

struct Cut {
  Pieces& pieces;

  /// Every piece becomes what split(text of the piece) says.
  template <class F>
  void each(F&& split) const {
    std::vector<Pieces::Piece> next;
    for (const Pieces::Piece& piece : pieces.all) {
      const std::string_view text = std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin);
      for (const Match& part : split(text)) next.push_back({piece.begin + part.begin, piece.begin + part.end});
    }
    pieces.all = std::move(next);
  }
  /// Every piece becomes the text that write(to, text of the piece, is it the first?) adds.
  template <class F>
  void rewrite(F&& write) const {
    std::string text;
    text.reserve(pieces.text.size() + pieces.all.size() + 2);
    for (Pieces::Piece& piece : pieces.all) {
      const std::size_t begin = text.size();
      write(text, std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin), pieces.first && piece.begin == 0);
      piece = {begin, text.size()};
    }
    pieces.text = std::move(text);
  }

  void operator()(const ByteLevelCut& step) const {
    if (step.prefix_space)
      rewrite([](std::string& to, std::string_view text, bool /*first*/) {
        if (!text.starts_with(' ')) to += ' ';
        to += text;
      });
    if (!step.pattern) return;
    std::vector<Pieces::Piece> next;
    for (const Pieces::Piece& piece : pieces.all) {
      const std::string_view text = std::string_view(pieces.text).substr(0, piece.end);
      for (std::size_t at = piece.begin; at < piece.end;) {
        const std::size_t size = word_size(text.substr(at), {});
        next.push_back({at, at + size});
        at += size;
      }
    }
    pieces.all = std::move(next);
  }
  void operator()(const SplitCut& step) const {
    each([&](std::string_view text) {
      std::vector<Match> matches = step.pattern.matches(text);
      if (step.invert)
        for (Match& match : matches) match.found = !match.found;
      return put_together(matches, step.behavior);
    });
  }
  void operator()(const DigitCut& step) const {
    each([&](std::string_view text) { return character_matches(text, !step.individual, is_numeric); });
  }
  void operator()(const BertCut& /*step*/) const {
    (*this)(WhiteSpaceCut{});
    (*this)(PunctuationCut{});
  }
  void operator()(const PunctuationCut& step) const {
    each([&](std::string_view text) { return put_together(character_matches(text, false, is_bert_punctuation), step.behavior); });
  }
  void operator()(const WhiteSpaceCut& step) const {
    if (step.words)
      each(word_matches);
    else
      each([](std::string_view text) { return put_together(character_matches(text, true, is_white_space), Behavior::removed); });
  }
  void operator()(const MetaspaceCut& step) const {
    using Prepend = MetaspaceCut::Prepend;
    rewrite([&](std::string& to, std::string_view text, bool first) {
      const bool marked = text.starts_with(' ') || text.starts_with(step.space);
      if (!marked && (step.prepend == Prepend::always || (step.prepend == Prepend::first && first))) to += step.space;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        to += text.substr(at, space - at);
        if (space < text.size()) to += step.space;
        at = space + 1;
      }
    });
    if (!step.split) return;
    each([&](std::string_view text) {
      std::vector<Match> words;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t mark = text.substr(at).starts_with(step.space) ? step.space.size() : 0;
        const std::size_t end = std::min(text.find(step.space, at + mark), text.size());
        words.push_back({at, end});
        at = end;
      }
      return words;
    });
  }
};

CutStep cut_step_from(const Json& json) {
  const std::string kind = kind_of(json);
  if (kind == "ByteLevel") return ByteLevelCut{flag(json, "add_prefix_space", true), flag(json, "use_regex", true)};
  if (kind == "Split")
    return SplitCut{Pattern(json.at("pattern")), behavior_from(json.at("behavior")), flag(json, "invert", false)};
  if (kind == "Digits") return DigitCut{flag(json, "individual_digits", false)};
  if (kind == "BertPreTokenizer") return BertCut{};
  if (kind == "Punctuation") {
    const Json* behavior = member(json, "behavior");
    return PunctuationCut{behavior == nullptr ? Behavior::isolated : behavior_from(*behavior)};
  }
  if (kind == "Whitespace" || kind == "WhitespaceSplit") return WhiteSpaceCut{kind == "Whitespace"};
  if (kind == "Metaspace") return metaspace_from(json);
  fail("pre_tokenizer",
       "expected ByteLevel, Split, Digits, BertPreTokenizer, Punctuation, Whitespace, WhitespaceSplit or Metaspace, got ", kind);
}
}  // namespace

MetaspaceCut metaspace_from(const Json& json) {
  MetaspaceCut step;
  step.space = text_of(json, "replacement", "▁");
  require(!step.space.empty() && first_code_point(step.space).bytes == step.space.size(), "replacement",
          "expected one character, got ", step.space);
  // Older files say only whether.
  const std::string scheme = text_of(json, "prepend_scheme", flag(json, "add_prefix_space", true) ? "always" : "never");
  require(scheme == "always" || scheme == "first" || scheme == "never", "prepend_scheme", "expected always, first or never, got ",
          scheme);
  using Prepend = MetaspaceCut::Prepend;
  step.prepend = scheme == "always" ? Prepend::always : scheme == "first" ? Prepend::first : Prepend::never;
  step.split = flag(json, "split", true);
  return step;
}

std::vector<CutStep> cutters_from(const Json* json) {
  std::vector<CutStep> steps;
  if (json == nullptr || json->is_null()) return steps;
  each_step(*json, "pretokenizers", [&](const Json& step) {
    // The package writes bytes as other characters there, which a later step would see.
    require(steps.empty() || !std::holds_alternative<ByteLevelCut>(steps.back()), "pre_tokenizer",
            "expected ByteLevel as the last step, got ", kind_of(step), " behind it");
    steps.push_back(cut_step_from(step));
  });
  return steps;
}

void cut(std::span<const CutStep> steps, Pieces& pieces) {
  for (const CutStep& step : steps) std::visit(Cut{pieces}, step);
}

}  // namespace isomer::tokenizers
