// As examples_test.cc, for the program. Compiled only: its commands are no part of the library.
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/http_server.h"
#include "cli/interrupt.h"
#include "isomer/train/evaluation.h"

namespace isomer::cli {
namespace {

struct Request {
  std::string run;
  Index examples = 1024;
};

/// Members of a class that nobody calls are compiled, and what they call need not be there.
struct Commands {
  static int eval_request(const Request& request) {
    Context context;
    return evaluate_run(request.run, {.examples = request.examples}, context).eval.examples > 0 ? kDone : kFailed;
  }
  // from cli/command.h
  Command eval_command(Options& options) {
    auto request = std::make_shared<Request>();
    options.add("run", request->run, "Folder of a run").required();
    options.add("--examples", request->examples, "Test examples [1024]").value("N").at_least(1);
    return [request] { return eval_request(*request); };
  }
  // end
  static void explore(const HttpHandler& handler) {
    // from cli/http_server.h
    serve_http({.port = 8765, .ready = [](int port) { std::cout << port << '\n'; }}, handler, watch_for_interrupt());
    // end
  }
};

}  // namespace
}  // namespace isomer::cli
