// isomer generate: text or tokens streamed from a language model.
#include "cli/generate.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/stopwatch.h"
#include "isomer/io/text.h"
#include "isomer/kernels/gemm/peak.h"
#include "isomer/models/prompt.h"
#include "isomer/train/generator.h"

namespace isomer::cli {

namespace {
using Request = GenerateRequest;

std::string standard_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

/// All that the options name, in the order of the options.
std::vector<std::string> prompts_of(const Request& request) {
  std::vector<std::string> all;
  for (const std::string& prompt : request.prompts) all.push_back(prompt == "-" ? standard_input() : prompt);
  for (const std::string& path : request.prompt_files) all.push_back(read_text(path));
  if (!request.prompt_lines.empty()) {
    std::ranges::move(read_lines(request.prompt_lines), std::back_inserter(all));
    if (all.empty()) throw Error("--prompt-lines: expected a prompt a line, got an empty file");
  }
  if (request.interactive && !all.empty()) throw Error("--interactive: expected prompts from standard input, got others");
  if (!request.interactive && all.empty() && request.load_state.empty())
    throw Error("expected --prompt, --prompt-file, --prompt-lines, --interactive or --load-state, got none");
  return all;
}

std::vector<std::int64_t> tokens_of(const std::string& prompt, const LoadedModel& loaded, const Request& request) {
  try {
    std::vector<std::int64_t> tokens = prompt_tokens(loaded, prompt, {.chat = request.chat, .first = request.load_state.empty()});
    if (tokens.empty()) throw Error("expected at least one token, got none");
    return tokens;
  } catch (const Error& problem) {
    throw Error(std::string("--prompt: ") + problem.what());
  }
}

/// The type of most numbers.
Type storage_of_most(const Parameters<float>& parameters) {
  std::map<Type, Index> sizes;
  for (const Parameter<float>& p : parameters.all()) sizes[p.storage()] += p.var.value.size();
  return std::ranges::max_element(sizes, {}, [](const auto& one) { return one.second; })->first;
}

/// What a token takes, beside what the machine can read in that time.
std::string reading(const LoadedModel& loaded, double state_bytes, double passes_per_second, Context& context) {
  const Index bytes = loaded.model.step_bytes(loaded.parameters);
  const double rate = (double(bytes) + state_bytes) * passes_per_second * 1e-9, most = measure_read(context, bytes);
  return std::to_string(bytes) + " bytes of weights in " + std::string(name_of(storage_of_most(loaded.parameters))) +
         ", reading " + formatted("%.1f", rate) + " GB/s: " + formatted("%.0f", 100 * rate / most) + " % of " +
         formatted("%.1f", most);
}

/// Before anything is printed: a model with learned positions has no more of them.
void require_positions(const Generator& generator, const ModelConfig& model, Index prompt, Index tokens) {
  const Index room = generator.room();
  if (room == std::numeric_limits<Index>::max() || prompt + tokens <= room) return;
  throw Error("--tokens: expected at most " + std::to_string(std::max<Index>(room - prompt, 0)) + " after a prompt of " +
              std::to_string(model.length - room + prompt) + ", for the model has " + std::to_string(model.length) +
              " learned positions, got " + std::to_string(tokens));
}

void save(const Generator& generator, const Request& request) {
  if (request.save_state.empty()) return;
  try {
    generator.save(request.save_state);
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
}

/// One piece of a conversation, printed as it comes, up to where the model ends it. How many tokens it took.
Index speak(Generator& generator, const LoadedModel& loaded, Index tokens) {
  Index said = 0;
  while (said < tokens) {
    const std::span<const std::int64_t> next = generator.next();
    ++said;
    if (ends(loaded, next[0])) break;
    std::cout << loaded.tokenizer->decode_next(next) << std::flush;
  }
  std::cout << std::endl;
  return said;
}

/// A line in, its continuation out, until the end of standard input. A line that cannot be read costs nothing but a complaint.
int converse(Generator& generator, const LoadedModel& loaded, const Request& request) {
  if (generator.sequences() > 1)
    throw Error("--interactive: expected a state of one sequence, got " + std::to_string(generator.sequences()));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  for (std::string line; (terminal && std::cerr << "> "), std::getline(std::cin, line);) {
    // An empty one lets it go on, once there is something to go on from.
    if (line.empty() && generator.sequences() == 0) continue;
    try {
      const std::vector<std::int64_t> tokens =
          prompt_tokens(loaded, line, {.chat = request.chat, .first = generator.sequences() == 0});
      require_positions(generator, loaded.model.config(), Index(tokens.size()), request.tokens);
      generator.read({tokens});
      (void)speak(generator, loaded, request.tokens);
    } catch (const Error& problem) {
      std::cerr << "isomer generate: " << problem.what() << std::endl;
    }
  }
  if (generator.sequences() > 0) save(generator, request);
  return kDone;
}

struct Continuation {
  std::string prompt;
  std::vector<std::int64_t> tokens;
  bool ended = false;
};

/// Several are printed when all are there.
void print(const std::vector<Continuation>& all, const Tokenizer& tokenizer, const Request& request, const Context& context) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text = tokenizer.decode_next(all[i].tokens);
    rows.push(Json::object({{"prompt", all[i].prompt}, {"text", text}, {"tokens", all[i].tokens}}));
    if (!request.json) std::cout << "[" << i + 1 << "] " << (tokenizer.is_text() ? all[i].prompt : "") << text << "\n";
  }
  if (request.json) print_json(context, rows);
}

void generate_once(Generator& generator, const LoadedModel& loaded, const Request& request, Context& context) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  const std::vector<std::string> prompts = prompts_of(request);
  std::vector<std::vector<std::int64_t>> tokens;
  Index longest = 0, read = 0;
  for (const std::string& prompt : prompts) {
    tokens.push_back(tokens_of(prompt, loaded, request));
    read += Index(tokens.back().size());
    longest = std::max(longest, Index(tokens.back().size()));
  }
  require_positions(generator, loaded.model.config(), longest, request.tokens);
  const Stopwatch watch_prefill;
  if (!prompts.empty()) generator.read(tokens);
  const double prefill = watch_prefill.seconds(), state_before = double(generator.state_bytes());
  const bool streams = generator.sequences() == 1 && !request.json;
  if (streams && tokenizer.is_text() && !prompts.empty() && !request.chat) std::cout << prompts[0] << std::flush;
  std::vector<Continuation> all(std::size_t(generator.sequences()));
  for (std::size_t i = 0; i < prompts.size(); ++i) all[i].prompt = prompts[i];
  const Stopwatch watch_decode;
  Index said = streams ? speak(generator, loaded, request.tokens) : 0;
  std::size_t ended = 0;
  for (; !streams && said < request.tokens && ended < all.size(); ++said) {
    const std::span<const std::int64_t> next = generator.next();
    for (std::size_t k = 0; k < next.size(); ++k) {
      if (all[k].ended) continue;
      all[k].ended = ends(loaded, next[k]);
      ended += all[k].ended ? 1 : 0;
      if (!all[k].ended) all[k].tokens.push_back(next[k]);
    }
  }
  const double decode = watch_decode.seconds(), steps = double(said) / decode;
  if (!streams) print(all, tokenizer, request, context);
  if (request.stats)
    std::cerr << "prefill " << formatted("%.0f", double(read) / prefill) << " tokens/s, decode "
              << formatted("%.0f", steps * double(generator.sequences())) << " tokens/s, state " << generator.state_bytes()
              << " bytes, "
              << reading(loaded, (state_before + double(generator.state_bytes())) / 2 / double(generator.passes()),
                         steps * double(generator.passes()), context)
              << "\n";
}

}  // namespace

void add_generate_options(Options& options, GenerateRequest& request) {
  options.add("--temperature", request.sample.temperature, "0 takes the likeliest token [0.8]");
  options.add("--top-k", request.sample.top_k, "Draw among the k likeliest; 0: all [0]");
  options.add("--top-p", request.sample.top_p, "Draw among the fewest likeliest that have this share of the probability [1]");
  options.add("--seed", request.seed,
              "Of the draws; the i-th of several prompts has this plus i - 1 and says what it would say alone [1]");
  options
      .add("--weights", request.weights,
           "What matrices are kept in: as the file has them, quantised ones as bf16 (file), or bf16: half the memory of float32, "
           "and half as much to read [file]")
      .one_of({"file", "float32", "bf16"});
  options
      .add("--compute", request.compute,
           "What weights in bf16 are multiplied with: numbers as they are (float32), or rounded to bf16, too: faster where the "
           "machine multiplies bf16; sums are in float32 [float32]")
      .one_of({"float32", "bf16"});
  options.flag("--stats", request.stats, "Print tokens per second, sizes, and the share of the machine's reading speed");
  options.flag("--json", request.json, "Print one JSON object");
  options.threads(request.threads);
}

std::unique_ptr<LoadedModel> load(const GenerateRequest& request) {
  std::optional<Type> storage;
  if (request.weights != "file") storage = request.weights == "bf16" ? Type::bf16 : Type::f32;
  std::unique_ptr<LoadedModel> loaded = load_model(request.model, storage);
  if (request.compute == "float32") return loaded;
  if (std::ranges::none_of(loaded->parameters.all(), [](const Parameter<float>& p) { return p.storage() == Type::bf16; }))
    throw Error("--compute bf16: expected weights in BF16, got " + std::string(name_of(storage_of_most(loaded->parameters))) +
                "; --weights bf16 keeps them so");
  loaded->parameters.multiply_in_bf16();
  return loaded;
}

int generate(const LoadedModel& loaded, const GenerateRequest& request) {
  Context context(request.threads);
  const ModelKind kind = loaded.model.config().kind;
  if (kind != ModelKind::language)
    throw Error(request.model + ": expected a language model, got a " + std::string(name_of(kind)));
  Generator generator(loaded, request.sample, request.seed, context);
  if (!request.load_state.empty()) generator.load(request.load_state);
  if (request.interactive) return (void)prompts_of(request), converse(generator, loaded, request);
  generate_once(generator, loaded, request, context);
  save(generator, request);
  return kDone;
}

Command generate_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("model", request->model, "Folder of a run or of a model, also of Hugging Face, or a GGUF file").required();
  options
      .add("--prompt", request->prompts,
           "Text to go on from; words or token numbers where the model has those; - is standard input. May be repeated")
      .value("TEXT")
      .repeated();
  options.add("--prompt-file", request->prompt_files, "The same in a file. May be repeated").value("FILE").repeated();
  options.add("--prompt-lines", request->prompt_lines, "A file with a prompt a line").value("FILE");
  options.flag("--interactive", request->interactive,
               "A line in, its continuation out, the state kept, until the end of standard input (Ctrl-D)");
  options.flag("--chat", request->chat, "Prompts are what a user says to a model that was taught conversations");
  options.add("--load-state", request->load_state, "Go on from a saved state; several prompts after one sequence fork it")
      .value("FILE");
  options.add("--save-state", request->save_state, "Where the state goes at the end").value("FILE");
  options.add("--tokens", request->tokens, "How many to generate, in each turn if interactive [200]").value("N").at_least(0);
  add_generate_options(options, *request);
  options.footer(
      "Example:\n  isomer generate runs/text --prompt \"The \" --tokens 300 --stats\n"
      "  isomer generate runs/text --prompt-file book.txt --tokens 0 --save-state book.state\n"
      "  isomer generate runs/text --load-state book.state --prompt \"Who \" --prompt \"Why \"");
  return [request] { return generate(*load(*request), *request); };
}

}  // namespace isomer::cli
