// isomer list: every preset and what a layer of it costs.
#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/context.h"
#include "isomer/mixers/catalogue.h"

namespace isomer::cli {

namespace {
struct Request {
  Index width = 256, tokens = 1024;
  TableOutput output;
};

int list_request(const Request& request) {
  print_rows(Context(1), preset_rows(request.width, request.tokens), request.output);
  if (request.output.for_people())
    std::cout << "One layer of width " << request.width << ", flops of a token in a sequence of " << request.tokens
              << ". isomer show PRESET says more.\n";
  return kDone;
}
}  // namespace

Command list_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("--width", request->width, "Channels of the layer").from_to(1, 1 << 20).value("N");
  options.add("--T", request->tokens, "Tokens of a sequence, for flops").from_to(1, 1 << 20).value("N");
  options.table(request->output);
  options.footer("A state that grows with the sequence is listed for each token of it.\nExample:\n  isomer list --width 512");
  return [request] { return list_request(*request); };
}

}  // namespace isomer::cli
