// isomer logits: a model on the tokens of a safetensors file, to compare it with other code.
#include "isomer/models/logits.h"

#include <iostream>

#include "cli/command.h"
#include "isomer/base/error.h"
#include "isomer/io/safetensors.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string model, tokens, output;
  LogitsOptions options;
  int threads = 0;
};

int logits_request(const Request& request) {
  if (request.model.empty()) throw Error("expected a model, got none");
  if (request.tokens.empty()) throw Error("expected --tokens FILE, got none");
  if (request.output.empty()) throw Error("expected --output FILE, got none");
  const auto loaded = load_model(request.model);
  if (const std::string left = left_out(*loaded); !left.empty())
    std::cerr << "isomer logits: " << request.model << ": " << left << "\n";
  Context context(request.threads);
  const Tensors out = logits_of(*loaded, read_safetensors(request.tokens), request.options, context);
  try {
    write_safetensors(request.output, out);
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
  return kDone;
}
}  // namespace

Command logits_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("MODEL", request->model, "Folder of a run or of a model");
  options.add("--tokens", request->tokens, "What the model reads, a safetensors file").value("FILE");
  options.add("--output", request->output, "Where logits and the rest go, a safetensors file").value("FILE");
  options.flag("--stream", request->options.stream, "A token at a time through the state (language models)");
  options.flag("--gradients", request->options.gradients,
               "The gradient of the loss by every weight, as grad.NAME; needs targets");
  options.flag("--attention", request->options.attention,
               "The effective attention matrix of every layer and head, as attention.layers.N.nodes.M");
  options.flag("--states", request->options.states,
               "What a stream remembers after the last token, as state.NAME (language models)");
  options.threads(request->threads);
  options.footer(
      "Tensors that go in:\n"
      "  tokens I64 [B, T]          for models of vectors inputs F32 [B, T, features], for vision also pixels F32 [B, C, H, W]\n"
      "  known F32 [B, n]           for models of tables: the class of each of the first n rows, from 0\n"
      "  types I64 [B, T]           for encoders that know several kinds of tokens: the kind, from 0 [0]\n"
      "  mask I64 [B, T]            1 = token, 0 = padding at the end, which nothing sees\n"
      "  offsets I64 [n + 1]        from 0 to T, with B = 1: n sequences packed into one row (language models)\n"
      "  targets I64 [B, T] or [B]  labels of the same positions, -100 = ignored; for regression F32 [B, outputs]\n"
      "Tensors that come out:\n"
      "  hidden F32 [B, T, width]   after the last norm; fewer tokens where the model has convolutions in front\n"
      "  logits F32 [B, T, labels]  or [B, labels] where a sequence has one label\n"
      "  loss F32 [1]               with targets: the mean\n"
      "  grad.NAME                  with --gradients\n"
      "  attention.layers.N.nodes.M F32 [B, heads, T, T], of the law at node M of layer N's mixer: what token t of its output "
      "takes of\n"
      "                             what token s writes; the mean absolute value over channels where those differ (scan: one "
      "head)\n"
      "  state.NAME                 as in the files of generate --save-state: state.layers.N.nodes.M.NAME, state.logits\n"
      "\nExample:\n  isomer logits runs/text --tokens tokens.safetensors --output logits.safetensors --stream");
  return [request] { return logits_request(*request); };
}

}  // namespace isomer::cli
