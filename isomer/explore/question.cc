#include "isomer/explore/question.h"

#include <functional>
#include <map>

#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer {

namespace {
using Reader = std::function<void(Question&, const Json&)>;

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> all{
      {"preset", [](Question& q, const Json& v) { q.preset = v.text(); }},
      {"settings",
       [](Question& q, const Json& v) {
         for (const auto& [name, value] : v.members()) q.settings[name] = value.text();
       }},
      {"text", [](Question& q, const Json& v) { q.text = v.text(); }},
      {"layer", [](Question& q, const Json& v) { q.where.layer = v.integer(); }},
      {"head", [](Question& q, const Json& v) { q.where.head = v.integer(); }},
      {"token", [](Question& q, const Json& v) { q.where.token = v.integer(); }},
      {"other", [](Question& q, const Json& v) { q.where.other = v.text(); }}};
  return all;
}
}  // namespace

Question question_of(std::string_view text) {
  const Json json = Json::parse(text, "question");
  if (!json.is_object()) throw Error("question: expected an object");
  Question question;
  for (const auto& [name, value] : json.members()) {
    const auto found = readers().find(name);
    if (found == readers().end()) {
      std::vector<std::string> known;
      for (const auto& reader : readers()) known.push_back(reader.first);
      throw Error("question: unknown member " + name + did_you_mean(name, known));
    }
    try {
      found->second(question, value);
    } catch (const Error& problem) {
      throw Error(name + ": " + problem.what());
    }
  }
  if (json.find("text") == nullptr) throw Error("question: expected a text, got none");
  return question;
}

}  // namespace isomer
