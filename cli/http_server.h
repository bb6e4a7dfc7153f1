#pragma once
// A server for this machine alone: it listens on 127.0.0.1, checks Host and Origin (isomer/explore/http.h), and hands whole
// requests to one function. It is a module that is loaded when it is needed (http/http_module.cc): the library behind it brings
// OpenSSL and brotli, and with them every command would start twice as slowly.
//
//   serve_http({.port = 8765, .ready = [](int port) { std::cout << port << '\n'; }}, handler, watch_for_interrupt());
#include <atomic>
#include <functional>

#include "isomer/explore/http.h"

namespace isomer::cli {

struct HttpOptions {
  int port = 0;                                      // 0: any that is free
  std::function<void(int port)> ready = [](int) {};  // it listens
};
/// Called by several threads.
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

/// Returns after `stop` has become true. Throws RunFailed when the port is taken, and where there is no module.
void serve_http(const HttpOptions& options, const HttpHandler& handler, const std::atomic<bool>& stop);

/// What the module exports.
using ServeHttp = void(const HttpOptions&, const HttpHandler&, const std::atomic<bool>&);

}  // namespace isomer::cli
