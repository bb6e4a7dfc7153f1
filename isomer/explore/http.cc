#include "isomer/explore/http.h"

#include <algorithm>
#include <array>

namespace isomer {

namespace {
bool names_loopback(std::string_view host, int port) {
  const std::string end = ":" + std::to_string(port);
  constexpr std::array<std::string_view, 3> kNames{"127.0.0.1", "localhost", "[::1]"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return host == std::string(name) + end; });
}
}  // namespace

HttpAnswer answer_of(const Json& json) { return {.body = json.dump()}; }

HttpAnswer error_answer(int status, std::string_view text) {
  HttpAnswer answer = answer_of(Json::object({{"error", text}}));
  answer.status = status;
  return answer;
}

std::optional<HttpAnswer> refused(const HttpRequest& request, int port) {
  constexpr std::string_view kScheme = "http://";
  if (!request.host || !names_loopback(*request.host, port))
    return error_answer(403, "expected a Host of this machine with port " + std::to_string(port));
  if (!request.origin) return {};
  const std::string_view origin = *request.origin;
  if (!origin.starts_with(kScheme) || !names_loopback(origin.substr(kScheme.size()), port))
    return error_answer(403, "expected a request of a page of this server");
  return {};
}

}  // namespace isomer
