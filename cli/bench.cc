// isomer bench: times laws, mixers and training, beside the machine's sgemm peak of the same run.
#include <algorithm>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/bench/compare.h"
#include "isomer/bench/laws.h"
#include "isomer/bench/layers.h"
#include "isomer/bench/training.h"
#include "isomer/bench/worker.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> laws;
  std::string form;
  std::vector<std::string> presets;
  TableOutput output;
  bool quick = false, worker = false, explain = false, crossover = false, layers = false, train = false;
  Index size = 64;
  int threads = 0;
};

/// Until the input ends.
void answer_requests() {
  BenchWorker worker;
  for (std::string line; std::getline(std::cin, line);) std::cout << worker.answer(line) << std::endl;
}

/// What could not be timed is a failure, after the rows of what could.
template <class Row>
void print(const BenchRows<Row>& result, const Request& request, const Context& context) {
  print_rows(context, result.rows, request.output);
  if (!result.refused.empty()) throw RunFailed(result.refused);
}

/// Measures while the progress shows, and prints when that is gone.
template <class Measure>
auto measured(const Measure& measure) {
  const Progress progress;
  return measure(progress.monitor());
}

void bench_presets(const Request& request, Context& context) {
  const PresetBench plan{.presets = request.presets, .quick = request.quick};
  if (request.layers) {
    print(measured([&](const Monitor& monitor) { return bench_layers(plan, context, monitor); }), request, context);
  } else {
    print(measured([&](const Monitor& monitor) { return bench_training(plan, context, monitor); }), request, context);
  }
}

void explain_choices(const std::vector<const Law*>& some, const Request& request, Context& context) {
  const std::vector<ChoiceRow> rows =
      measured([&](const Monitor& monitor) { return explain(some, context, request.quick, monitor); });
  print_rows(context, rows, request.output);
  constexpr double kLimit = 1.1;
  const auto within = std::ranges::count_if(rows, [](const ChoiceRow& row) { return row.ratio() <= kLimit; });
  if (request.output.for_people())
    std::cout << within << " of " << rows.size() << " choices are within 10 % of the best measured one\n";
}

void find_crossovers(const std::vector<const Law*>& some, const Request& request, Context& context) {
  const std::vector<CrossoverRow> rows =
      measured([&](const Monitor& monitor) { return crossover(some, context, request.size, request.quick, monitor); });
  print_rows(context, rows_json(rows), request.output, crossover_text(rows));
}

int bench_request(const Request& request) {
  if (request.worker) {
    answer_requests();
    return kDone;
  }
  require(request.presets.empty() || request.layers || request.train, "--preset", "expected --layers or --train beside it");
  LawBench plan{.quick = request.quick};
  for (const std::string& name : request.laws) plan.laws.push_back(&find_law(name));
  if (plan.laws.empty()) plan.laws.assign(laws().begin(), laws().end());
  if (!request.form.empty()) plan.form = form_named(request.form);
  Context context(request.threads);
  if (request.layers || request.train) {
    bench_presets(request, context);
    return kDone;
  }
  if (request.explain) explain_choices(plan.laws, request, context);
  if (request.crossover) find_crossovers(plan.laws, request, context);
  if (request.explain || request.crossover) return kDone;
  print(measured([&](const Monitor& monitor) { return bench_laws(plan, context, monitor); }), request, context);
  return kDone;
}
}  // namespace

Command bench_command(Options& options) {
  auto request = std::make_shared<Request>();
  const Option law = options.add("--law", request->laws, "Which law; may be repeated, all if not given").value("LAW").repeated();
  const Option form = options.add("--form", request->form, "Only this form").value("FORM");
  options.flag("--quick", request->quick, "Fewer cases and samples");
  options.table(request->output);
  const Option explain =
      options.flag("--explain", request->explain, "What Form::automatic takes, and how far it is from the best");
  options.flag("--crossover", request->crossover, "The length at which each law becomes cheaper than softmax attention")
      .excludes(explain);
  const Option layers =
      options.flag("--layers", request->layers, "Whole mixers, and how much of their time is outside of matrix products and laws")
          .excludes(law)
          .excludes(form);
  options.flag("--train", request->train, "Steps of training a language model of four layers")
      .excludes(layers)
      .excludes(law)
      .excludes(form);
  options.add("--preset", request->presets, "For --layers and --train: which mixer; may be repeated, all if not given")
      .value("PRESET")
      .repeated();
  options.add("--size", request->size, "Size of a head, for --crossover").value("K").from_to(1, 512);
  options.flag("--worker", request->worker, "Answer timing requests of a driver, one JSON object a line");
  options.threads(request->threads);
  options.footer(
      "GFLOP/s are nominal, from the cost model of the law; the peak is that of sgemm, measured in the same run with the same\n"
      "threads. A law whose check fails is not timed.\nExample:\n  isomer bench --law attention --threads 1 --quick\n"
      "  isomer bench --train --preset gla --quick");
  return [request] { return bench_request(*request); };
}

}  // namespace isomer::cli
