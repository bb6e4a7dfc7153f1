#include "isomer/report/page.h"

#include "isomer/base/error.h"

namespace isomer {

namespace {
/// JSON that may stand inside an element: the same value, without a character that HTML knows.
std::string inside_html(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) switch (c) {
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += c;
    }
  return text;
}
}  // namespace

std::string page_of(const Json& data) {
  constexpr std::string_view kBefore = R"(id="data">)", kNone = "null";
  const std::string_view page = page_template();
  const std::size_t before = page.find(kBefore);
  const std::size_t at = before + kBefore.size();
  ISOMER_ASSERT(before != std::string_view::npos && page.substr(at, kNone.size()) == kNone, "the page has a place for its data");
  std::string text(page.substr(0, at));
  text += inside_html(data.dump());
  text += page.substr(at + kNone.size());
  return text;
}

}  // namespace isomer
