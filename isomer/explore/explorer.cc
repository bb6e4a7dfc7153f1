#include "isomer/explore/explorer.h"

#include <algorithm>
#include <map>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"

namespace isomer {

namespace {
// Words that come again show what a mixer recalls.
constexpr const char* kSentence = "the cat sat on the mat and the dog sat by the cat";
constexpr std::size_t kKept = 4;  // both sides of the page, and what they were before

/// Tokens for a model of which nothing is known but its vocabulary.
std::string first_text(const LookedAt& model) {
  if (model.tokenizer->is_text()) return kSentence;
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < 16; ++i) tokens.push_back((1 + 3 * (i % 8)) % model.tokenizer->vocabulary());
  return model.tokenizer->decode(tokens);
}

std::string key_of(const Question& question) {
  Json settings = Json::object();
  for (const auto& [name, value] : question.settings) settings.set(name, value);
  return Json::object({{"preset", question.preset}, {"settings", settings}, {"text", question.text}}).dump();
}

/// "application/json", whatever follows a semicolon.
bool is_json(const std::optional<std::string>& type) {
  constexpr std::string_view kJson = "application/json";
  return type && type->starts_with(kJson) && (type->size() == kJson.size() || (*type)[kJson.size()] == ';');
}
}  // namespace

Explorer::Explorer(ExplorerOptions options) : options_(std::move(options)) {
  if (options_.text.empty()) options_.text = options_.model ? first_text(*options_.model) : kSentence;
  // What cannot be shown is said before a browser opens.
  Question first{.text = options_.text};
  if (!options_.model) first.preset = options_.preset;
  (void)subject_of(first);
}

Json Explorer::start() const {
  Json all = Json::array();
  for (const Preset* preset : presets()) {
    const graph::Graph graph = build_mixer(*preset, {.width = FreshQuestion{}.width});
    if (graph::causal(graph)) all.push(Json::object({{"preset", preset->name}, {"law", graph.law}}));
  }
  const std::string beside = options_.preset == "softmax" ? "gla" : "softmax";
  return Json::object({{"kind", "explore"},
                       {"version", version()},
                       {"presets", all},
                       {"run", options_.model ? Json(options_.model->name) : Json()},
                       {"text", options_.text},
                       {"left", options_.model ? Json() : Json(options_.preset)},
                       {"right", beside}});
}

HttpAnswer Explorer::answer(const HttpRequest& request) const {
  static const std::map<std::string, Look, std::less<>> looks{
      {"/api/view", [](const Sight& sight, const Where& where, Context&) { return view_json(sight, where); }},
      {"/api/maps", [](const Sight& sight, const Where& where, Context&) { return maps_json(sight, where); }},
      {"/api/curves", [](const Sight& sight, const Where& where, Context&) { return curves_json(sight, where); }},
      {"/api/state", [](const Sight& sight, const Where& where, Context&) { return state_json(sight, where); }},
      {"/api/influence", influence_json},
      {"/api/terms", terms_json}};
  const auto found = looks.find(request.path);
  if (found == looks.end() && request.path != "/") return error_answer(404, "there is nothing at " + request.path);
  const char* method = found == looks.end() ? "GET" : "POST";
  if (request.method != method) return error_answer(405, "expected " + std::string(method) + ", got " + request.method);
  if (found == looks.end()) return {.type = "text/html; charset=utf-8", .body = page_};
  return look(found->second, request);
}

HttpAnswer Explorer::look(Look at, const HttpRequest& request) const {
  // A form of another page cannot send this type unasked.
  if (!is_json(request.content_type)) return error_answer(415, "expected Content-Type application/json");
  try {
    Context context(1);
    const Question question = question_of(request.body);
    return answer_of(at(*sight_of(question, context), question.where, context));
  } catch (const Error& problem) {
    return error_answer(400, problem.what());
  }
}

std::unique_ptr<const Subject> Explorer::subject_of(const Question& question) const {
  if (question.preset) {
    const auto words = options_.model ? words_of(*options_.model, question.text) : words_of(question.text);
    return fresh_subject({.preset = *question.preset, .settings = question.settings, .words = words});
  }
  if (!options_.model) throw Error("question: expected a preset, got none");
  if (!question.settings.empty()) throw Error("question: expected no settings of a trained run");
  return model_subject(options_.model, question.text);
}

std::shared_ptr<const Sight> Explorer::sight_of(const Question& question, Context& context) const {
  const std::string key = key_of(question);
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(kept_, key, &Kept::key);
    if (found != kept_.end()) return found->sight;
  }
  auto sight = std::make_shared<const Sight>(subject_of(question), context);
  const std::lock_guard lock(mutex_);
  kept_.push_front({key, sight});
  if (kept_.size() > kKept) kept_.pop_back();
  return sight;
}

}  // namespace isomer
