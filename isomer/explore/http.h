#pragma once
// HTTP without a socket: what a server hands on and what it sends back. A server for this machine alone refuses whatever does not
// name it: pages of other hosts reach it by names that point here (DNS rebinding), and by forms and scripts.
//
//   if (const std::optional<HttpAnswer> refusal = refused(request, port)) return *refusal;
#include <optional>
#include <string>
#include <string_view>

#include "isomer/io/json.h"

namespace isomer {

struct HttpRequest {
  std::string method, path;  // without what follows a question mark
  std::optional<std::string> host = {}, origin = {}, content_type = {};
  std::string body = {};
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
};

/// The JSON, with status 200.
[[nodiscard]] HttpAnswer answer_of(const Json& json);
/// {"error": text}.
[[nodiscard]] HttpAnswer error_answer(int status, std::string_view text);

/// Unless Host is a loopback name with the port and Origin, if there is one, is the same: 403.
[[nodiscard]] std::optional<HttpAnswer> refused(const HttpRequest& request, int port);

}  // namespace isomer
