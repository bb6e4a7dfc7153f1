// isomer explore: mixers and trained runs as attention maps, on a page that the program answers.
#include <malloc.h>

#include <iostream>
#include <thread>

#include "cli/browser.h"
#include "cli/command.h"
#include "cli/http_server.h"
#include "cli/interrupt.h"
#include "isomer/base/error.h"
#include "isomer/explore/explorer.h"
#include "isomer/io/files.h"
#include "isomer/report/page.h"
#include "isomer/report/schema.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string subject, text;
  int port = 8765;
  bool open = false;
};

ExplorerOptions options_of(const Request& request) {
  ExplorerOptions options{.text = request.text};
  if (request.subject.empty()) return options;
  if (request.subject.ends_with(".gguf") || is_folder(run_path(request.subject).run))
    options.model = load_to_look_at(request.subject);
  else
    options.preset = request.subject;
  return options;
}

/// A question takes many megabytes and gives them back. Pages that stay with the process need not be cleared for the next one,
/// which was half the time of the largest maps.
void keep_memory() {
  constexpr int kMost = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kMost);
  ::mallopt(M_TRIM_THRESHOLD, kMost);
  ::mallopt(M_ARENA_MAX, 1);  // else each of the server's threads keeps its own
}

int explore_request(const Request& request) {
  keep_memory();
  Explorer explorer(options_of(request));
  Json start = explorer.start();
  start.set("schema", kPageSchema);
  explorer.show(page_of(start));
  const auto ready = [&](int port) {
    const std::string address = "http://127.0.0.1:" + std::to_string(port) + "/";
    std::cout << address << "  (Ctrl-C ends it)" << std::endl;
    if (!request.open) return;
    // A browser may stay in front of whoever started it.
    std::thread([address] {
      if (!opened_in_browser(address))
        std::cerr << "isomer explore: no browser could be opened by xdg-open: open " + address + " yourself\n";
    }).detach();
  };
  serve_http(
      {.port = request.port, .ready = ready}, [&](const HttpRequest& asked) { return explorer.answer(asked); },
      watch_for_interrupt());
  return kDone;
}
}  // namespace

Command explore_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("RUN|PRESET", request->subject, "A trained run or model of tokens (a folder, or a GGUF file), or a mixer [gla]");
  options.add("--text", request->text, "What is read first; the page can change it").value("TEXT");
  options.add("--port", request->port, "Where it listens, on this machine alone; 0: wherever is free [8765]")
      .from_to(0, 65535)
      .value("N");
  options.flag("--open", request->open, "Open it in a browser");
  options.footer(
      "A page that shows any two mixers beside each other as attention maps, with the state that they keep, and follows their\n"
      "options: linear, gated and delta models beside softmax. Only this machine can reach it.\n\n"
      "Example:\n  isomer explore gla --open\n  isomer explore runs/text --text \"The end\"");
  return [request] { return explore_request(*request); };
}

}  // namespace isomer::cli
