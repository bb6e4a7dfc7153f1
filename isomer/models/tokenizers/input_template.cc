#include "isomer/models/tokenizers/input_template.h"

#include "isomer/models/tokenizers/json_parts.h"

namespace isomer::tokenizers {

namespace {
using Part = InputTemplate::Part;

std::int64_t type_of(const Json& json) {
  const Json* type = member(json, "type_id");
  const std::int64_t number = type == nullptr ? 0 : type->integer();
  require(number >= 0 && number < kMostTokens, "post_processor", "expected types from 0 on, got ", number);
  return number;
}

/// {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}}.
Part part_from(const Json& json, const Json& special) {
  if (const Json* sequence = json.find("Sequence")) {
    const std::string& id = sequence->at("id").text();
    require(id == "A" || id == "B", "post_processor", "expected the sequence A or B, got ", id);
    return {.kind = id == "A" ? Part::Kind::first : Part::Kind::second, .type = type_of(*sequence)};
  }
  const Json& token = json.at("SpecialToken");
  Part part{.kind = Part::Kind::special, .type = type_of(token)};
  const Json* known = special.find(token.at("id").text());
  if (known == nullptr) fail("post_processor", "expected a special token that the template knows, got ", token.at("id").text());
  for (const Json& number : known->at("ids").items()) part.tokens.push_back(token_number(number));
  return part;
}

std::vector<Part> parts_from(const Json& json, const Json& special) {
  std::vector<Part> parts;
  for (const Json& part : json.items()) parts.push_back(part_from(part, special));
  return parts;
}

/// ["[SEP]", 102].
Part token_from(const Json& json, std::int64_t type) {
  require(json.items().size() == 2, "post_processor", "expected a token and its number, got ", json.items().size(), " values");
  return {.kind = Part::Kind::special, .type = type, .tokens = {token_number(json.items()[1])}};
}

/// BERT: [CLS] A [SEP] B [SEP]. RoBERTa: <s> A </s> </s> B </s>, all of one type.
InputTemplate fixed_template(const Json& json, bool bert) {
  const Part begin = token_from(json.at("cls"), 0), end = token_from(json.at("sep"), 0);
  const Part second{.kind = Part::Kind::second, .type = bert ? 1 : 0};
  InputTemplate all{.single = {begin, {}, end}, .pair = {begin, {}, end}};
  if (!bert) all.pair.push_back(end);
  all.pair.push_back(second);
  all.pair.push_back(token_from(json.at("sep"), second.type));
  return all;
}
}  // namespace

InputTemplate input_template_from(const Json* json) {
  InputTemplate all;
  if (json == nullptr || json->is_null()) return all;
  bool found = false;
  each_step(*json, "processors", [&](const Json& step) {
    const std::string kind = kind_of(step);
    // Of positions only, which nobody asks for here.
    if (kind == "ByteLevel") return;
    require(!found, "post_processor", "expected one step that adds tokens, got ", kind, " behind it");
    found = true;
    if (kind == "TemplateProcessing")
      all = {parts_from(step.at("single"), step.at("special_tokens")), parts_from(step.at("pair"), step.at("special_tokens"))};
    else if (kind == "BertProcessing" || kind == "RobertaProcessing")
      all = fixed_template(step, kind == "BertProcessing");
    else
      fail("post_processor", "expected ByteLevel, TemplateProcessing, BertProcessing or RobertaProcessing, got ", kind);
  });
  return all;
}

TokenizerInput InputTemplate::filled(std::span<const Part> parts, std::span<const std::int64_t> first,
                                     std::span<const std::int64_t> second) {
  TokenizerInput input;
  for (const Part& part : parts) {
    const std::span<const std::int64_t> tokens = part.kind == Part::Kind::first    ? first
                                                 : part.kind == Part::Kind::second ? second
                                                                                   : std::span<const std::int64_t>(part.tokens);
    input.tokens.insert(input.tokens.end(), tokens.begin(), tokens.end());
    input.types.resize(input.tokens.size(), part.type);
  }
  return input;
}

}  // namespace isomer::tokenizers
