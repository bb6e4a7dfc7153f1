// isomer generate: text or tokens streamed from a language model.
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/kernels/gemm/peak.h"
#include "isomer/models/model_folder.h"
#include "isomer/train/sample.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string model, prompt;
  Index tokens = 200, top_k = 0;
  double temperature = 0.8;
  std::uint64_t seed = 1;
  std::string weights = "float32";
  bool stats = false;
  int threads = 0;
};

std::vector<std::int64_t> tokens_of(const std::string& prompt, const Tokenizer& tokenizer) {
  try {
    std::vector<std::int64_t> tokens = tokenizer.encode(prompt);
    if (tokens.empty()) throw Error("expected at least one token, got none");
    return tokens;
  } catch (const Error& problem) {
    throw Error(std::string("--prompt: ") + problem.what());
  }
}

/// What a token takes, beside what the machine can read in that time.
std::string reading(const LoadedModel& loaded, const std::string& weights, double state_bytes, double tokens_per_second,
                    Context& context) {
  const Index bytes = loaded.model.step_bytes(loaded.parameters);
  const double rate = (double(bytes) + state_bytes) * tokens_per_second * 1e-9, most = measure_read(context, bytes);
  return std::to_string(bytes) + " bytes of " + weights + " weights, reading " + formatted("%.1f", rate) +
         " GB/s: " + formatted("%.0f", 100 * rate / most) + " % of " + formatted("%.1f", most);
}

/// Before anything is printed: a model with learned positions has no more of them.
void require_positions(const ModelConfig& model, Index prompt, Index tokens) {
  if (!model.positions || prompt + tokens <= model.length) return;
  throw Error("--tokens: expected at most " + std::to_string(std::max<Index>(model.length - prompt, 0)) + " after a prompt of " +
              std::to_string(prompt) + ", for the model has " + std::to_string(model.length) + " learned positions, got " +
              std::to_string(tokens));
}

int generate_request(const Request& request) {
  Context context(request.threads);
  const auto loaded = load_model(request.model, request.weights == "bf16" ? Type::bf16 : Type::f32);
  const Model<float>& model = loaded->model;
  const ModelConfig& config = model.config();
  if (config.kind != ModelKind::language)
    throw Error(request.model + ": expected a language model, got a " + std::string(name_of(config.kind)));
  const Tokenizer& tokenizer = *loaded->tokenizer;
  const std::vector<std::int64_t> prompt = tokens_of(request.prompt, tokenizer);
  require_positions(config, Index(prompt.size()), request.tokens);
  Sampler sampler({.temperature = request.temperature, .top_k = request.top_k}, request.seed);
  Tape<float> tape(context, Record::no);
  ModelState<float> state = model.start(1);
  const Stopwatch watch_prefill;
  View<const float, 2> logits = model.prefill(tape, prompt, state);
  const double prefill = watch_prefill.seconds(), state_before = double(state.bytes());
  if (tokenizer.is_text()) std::cout << request.prompt << std::flush;
  const Stopwatch watch_decode;
  for (Index i = 0; i < request.tokens; ++i) {
    const std::int64_t token = sampler({logits.data, std::size_t(logits.shape[1])});
    std::cout << tokenizer.decode({&token, 1}) << std::flush;
    logits = model.step(tape, {&token, 1}, state);
    tape.clear();
  }
  const double decode = watch_decode.seconds();
  std::cout << std::endl;
  if (request.stats)
    std::cerr << "prefill " << formatted("%.0f", double(prompt.size()) / prefill) << " tokens/s, decode "
              << formatted("%.0f", double(request.tokens) / decode) << " tokens/s, state " << state.bytes() << " bytes, "
              << reading(*loaded, request.weights, (state_before + double(state.bytes())) / 2, double(request.tokens) / decode,
                         context)
              << "\n";
  return kDone;
}
}  // namespace

Command generate_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("model", request->model, "Folder of a run or of a model").required();
  options.add("--prompt", request->prompt, "Text to go on from; words or token numbers where the model has those").required();
  options.add("--tokens", request->tokens, "How many to generate [200]").value("N").at_least(0);
  options.add("--temperature", request->temperature, "0 takes the likeliest token [0.8]");
  options.add("--top-k", request->top_k, "Draw among the k likeliest; 0: all [0]");
  options.add("--seed", request->seed, "Of the draws [1]");
  options.add("--weights", request->weights, "bf16 stores matrices so: half the memory, and half as much to read [float32]")
      .one_of({"float32", "bf16"});
  options.flag("--stats", request->stats, "Print tokens per second, sizes, and the share of the machine's reading speed");
  options.threads(request->threads);
  options.footer("Example:\n  isomer generate runs/text --prompt \"The \" --tokens 300 --stats");
  return [request] { return generate_request(*request); };
}

}  // namespace isomer::cli
