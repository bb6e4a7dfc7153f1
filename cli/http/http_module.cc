// The module of http_server.h: cpp-httplib is compiled here alone.
#include <httplib.h>
#include <pthread.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/http_server.h"

namespace isomer::cli {

namespace {
constexpr const char* kLoopback = "127.0.0.1";
// A browser holds six connections, each of which keeps a thread until it has been quiet for the timeout.
constexpr std::size_t kThreads = 8;
constexpr std::time_t kQuietSeconds = 1, kReadSeconds = 2;
constexpr std::size_t kLargestBody = 1 << 16;

/// The one header of that name; a request with several says nothing.
std::optional<std::string> header(const httplib::Request& request, const char* name) {
  if (request.get_header_value_count(name) != 1) return {};
  return request.get_header_value(name);
}

HttpRequest request_of(const httplib::Request& from) {
  return {.method = from.method,
          .path = from.path,
          .host = header(from, "Host"),
          .origin = from.has_header("Origin") ? std::optional(header(from, "Origin").value_or("")) : std::nullopt,
          .content_type = header(from, "Content-Type"),
          .body = from.body};
}

void send(HttpAnswer answer, httplib::Response& to) {
  to.status = answer.status;
  const auto body = std::make_shared<const std::string>(std::move(answer.body));
  // From a provider, because a body as such would be packed by brotli at its slowest: a second for what travels no way.
  to.set_content_provider(body->size(), answer.type, [body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
    return sink.write(body->data() + offset, length);
  });
}

class Listener {
 public:
  Listener(const HttpOptions& options, const HttpHandler& handler) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_keep_alive_timeout(kQuietSeconds).set_keep_alive_max_count(1000).set_read_timeout(kReadSeconds);
    server_.set_payload_max_length(kLargestBody);
    // The library's own would let a second server share the port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"}});
    port_ = options.port == 0 ? server_.bind_to_any_port(kLoopback)
                              : (server_.bind_to_port(kLoopback, options.port) ? options.port : -1);
    if (port_ < 0)
      throw RunFailed("port " + std::to_string(options.port) + " is taken or not allowed: give another with --port, or --port 0");
    route(handler);
  }

  [[nodiscard]] int port() const { return port_; }
  void listen() { server_.listen_after_bind(); }
  [[nodiscard]] bool listens() const { return server_.is_running(); }
  void stop() { server_.stop(); }

 private:
  void route(const HttpHandler& handler) {
    // Before a body is read.
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      auto refusal = refused(request_of(request), port_);
      // The library bounds bodies by the length that they announce.
      if (!refusal && request.has_header("Transfer-Encoding")) refusal = error_answer(411, "expected a body with Content-Length");
      if (!refusal) return httplib::Server::HandlerResponse::Unhandled;
      send(std::move(*refusal), response);
      return httplib::Server::HandlerResponse::Handled;
    });
    const auto handle = [handler](const httplib::Request& request, httplib::Response& response) {
      const auto begin = std::chrono::steady_clock::now();
      HttpAnswer answer = handler(request_of(request));
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      response.set_header("Server-Timing", "answer;dur=" + std::to_string(took.count()));
      send(std::move(answer), response);
    };
    const char* anything = "/.*";
    server_.Get(anything, handle).Post(anything, handle).Put(anything, handle).Patch(anything, handle).Delete(anything, handle);
    server_.Options(anything, handle);
    server_.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr problem) {
      std::string text = "it failed";
      try {
        std::rethrow_exception(std::move(problem));
      } catch (const std::exception& e) {
        text = e.what();
      }
      send(error_answer(500, text), response);
    });
    // What the library refuses by itself: malformed, too large, of an unknown method.
    server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.has_header("Content-Type")) return;
      send(error_answer(response.status, "the request was refused"), response);
    });
  }

  httplib::Server server_;
  int port_ = -1;
};

/// Signals are for the thread that waits, not for those that serve.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&all, signal);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};
}  // namespace

extern "C" ServeHttp isomer_serve_http;  // NOLINT(readability-redundant-declaration): it has the type that the program expects

void isomer_serve_http(const HttpOptions& options, const HttpHandler& handler, const std::atomic<bool>& stop) {
  Listener listener(options, handler);
  std::atomic<bool> ended = false;
  std::thread serving;
  {
    const SignalsBlocked blocked;
    serving = std::thread([&] {
      listener.listen();
      ended = true;
    });
  }
  using namespace std::chrono_literals;
  while (!listener.listens() && !ended) std::this_thread::sleep_for(1ms);
  if (!ended) options.ready(listener.port());
  while (!stop && !ended) std::this_thread::sleep_for(50ms);
  listener.stop();
  serving.join();
  if (!stop) throw RunFailed("the server ended by itself");
}

}  // namespace isomer::cli
