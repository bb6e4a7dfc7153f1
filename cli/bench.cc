// isomer bench: times the laws, beside the machine's sgemm peak of the same run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_train.h"
#include "cli/command.h"
#include "cli/compare.h"
#include "cli/layers.h"
#include "cli/report.h"
#include "cli/serve.h"
#include "cli/timing.h"
#include "isomer/base/error.h"
#include "isomer/kernels/gemm/peak.h"
#include "isomer/laws/check.h"

namespace isomer::cli {

namespace {
struct Request {
  std::vector<std::string> laws;
  std::string form;
  std::vector<std::string> presets;
  bool json = false, quick = false, serve = false, explain = false, crossover = false, layers = false, train = false;
  Index size = 64;
  int threads = 0;
};

struct Row {
  BenchCase what;
  Timing timing;
  double us_per_token, gflops, peak_share, state_bytes;
};

/// Why the law must not be timed; empty if it may.
std::string red_row(const Law& law, Context& context) {
  for (const CheckRow& row : check(law, context, {.types = {Type::f32}}))
    if (!row.pass)
      return row.form + " " + row.quantity + " is off by " + formatted("%.1e", row.error) + " (limit " +
             formatted("%.1e", row.limit) + ") in case " + row.worst;
  return {};
}

std::string title(const BenchCase& c) {
  return c.subject + " " + c.variant + " " + c.direction + " T=" + std::to_string(c.T) + " " + std::to_string(c.H) + "x" +
         std::to_string(c.K);
}

std::vector<BenchCase> cases_of(const Law& law, const Request& request) {
  std::vector<BenchCase> cases = law.bench_cases(request.quick);
  if (request.form.empty()) return cases;
  const Form form = form_named(request.form);
  const bool other = form != Form::step;
  // A form that no case has by itself is timed on the cases of the chunk form.
  std::erase_if(cases, [&](const BenchCase& c) { return (c.form == Form::step) == other; });
  for (BenchCase& c : cases) c.form = form;
  return cases;
}

void time_law(const Law& law, const Request& request, Context& context, std::vector<Row>& rows) {
  const Progress progress;
  // The clock of a machine drifts with its load, so every law has the peak of its own minute.
  progress.show("the sgemm peak");
  const double peak = measure_peak(context);
  for (const BenchCase& what : cases_of(law, request)) {
    progress.show(title(what));
    const BenchWork work = law.prepare(what);
    const Timing timing = measure(work, context, request.quick ? 0.2 : 1.0);
    const double gflops = work.flops / timing.median / 1e9;
    rows.push_back({what, timing, timing.median * 1e6 / double(what.B * what.T), gflops, gflops / peak, work.state_bytes});
  }
}

void print_table(const std::vector<Row>& rows, int threads) {
  Table table({"law", "variant", "form", "direction", "B", "T", "H", "K", "V", "threads", "µs/token", "±", "GFLOP/s", "of peak",
               "state bytes"});
  for (const Row& row : rows) {
    const BenchCase& c = row.what;
    const auto number = [](Index n) { return std::to_string(n); };
    table.add({c.subject, c.variant, std::string(name_of(c.form)), c.direction, number(c.B), number(c.T), number(c.H),
               number(c.K), number(c.V), number(threads), formatted("%.3f", row.us_per_token),
               formatted("%.1f%%", 100 * row.timing.spread / row.timing.median), formatted("%.1f", row.gflops),
               formatted("%.0f%%", 100 * row.peak_share), formatted("%.0f", row.state_bytes)});
  }
  table.print();
}

nlohmann::ordered_json as_json(const Row& row, int threads) {
  const BenchCase& c = row.what;
  return {{"subject", c.subject},
          {"variant", c.variant},
          {"form", name_of(c.form)},
          {"direction", c.direction},
          {"B", c.B},
          {"T", c.T},
          {"S", c.S},
          {"H", c.H},
          {"K", c.K},
          {"V", c.V},
          {"window", c.window},
          {"threads", threads},
          {"type", "f32"},
          {"us_per_token", row.us_per_token},
          {"spread_us", row.timing.spread * 1e6 / double(c.B * c.T)},
          {"samples", row.timing.samples},
          {"gflops", row.gflops},
          {"peak_share", row.peak_share},
          {"state_bytes", row.state_bytes},
          {"peer", nullptr},
          {"ratio", nullptr}};
}

int bench_request(const Request& request) {
  if (request.serve) {
    serve();
    return kDone;
  }
  require(request.presets.empty() || request.layers || request.train, "--preset", "expected --layers or --train beside it");
  std::vector<const Law*> some;
  for (const std::string& name : request.laws) some.push_back(&find_law(name));
  if (some.empty()) some.assign(laws().begin(), laws().end());
  if (!request.form.empty()) (void)form_named(request.form);
  Context context(request.threads);
  if (request.layers || request.train) {
    const PresetBench what{.presets = request.presets, .quick = request.quick, .json = request.json};
    request.layers ? bench_layers(what, context) : bench_training(what, context);
    return kDone;
  }
  if (request.explain) explain(some, context, request.quick, request.json);
  if (request.crossover) crossover(some, context, request.size, request.quick, request.json);
  if (request.explain || request.crossover) return kDone;
  std::vector<Row> rows;
  std::string refused;
  for (const Law* law : some) {
    Progress().show("checking " + std::string(law->name()) + " before it is timed");
    if (const std::string red = red_row(*law, context); red.empty())
      time_law(*law, request, context, rows);
    else
      refused += (refused.empty() ? "" : "; ") + std::string(law->name()) + " is not timed because its check fails: " + red;
  }
  if (request.json) {
    auto all = nlohmann::ordered_json::array();
    for (const Row& row : rows) all.push_back(as_json(row, context.threads()));
    print_json(context, all);
  } else {
    print_table(rows, context.threads());
  }
  if (!refused.empty()) throw RunFailed(refused);
  return kDone;
}
}  // namespace

Command bench_command(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option("--law", request->laws, "Which law; may be repeated, all if not given")
      ->type_name("LAW")
      ->allow_extra_args(false);
  app.add_option("--form", request->form, "Only this form")->type_name("FORM");
  app.add_flag("--quick", request->quick, "Fewer cases and samples");
  app.add_flag("--json", request->json, "Print one JSON object");
  CLI::Option* explain =
      app.add_flag("--explain", request->explain, "What Form::automatic takes, and how far it is from the best");
  app.add_flag("--crossover", request->crossover, "The length at which each law becomes cheaper than softmax attention")
      ->excludes(explain);
  CLI::Option* layers =
      app.add_flag("--layers", request->layers, "Whole mixers, and how much of their time is outside of products and laws");
  app.add_flag("--train", request->train, "Steps of training a language model of four layers")->excludes(layers);
  app.add_option("--preset", request->presets, "For --layers and --train: which mixer; may be repeated, all if not given")
      ->type_name("PRESET")
      ->allow_extra_args(false);
  app.add_option("--size", request->size, "Size of a head, for --crossover")->type_name("K")->check(CLI::Range(1, 512));
  app.add_flag("--serve", request->serve, "Answer timing requests, one JSON object a line");
  add_threads(app, request->threads);
  app.footer(
      "GFLOP/s are nominal, from the cost model of the law; the peak is that of sgemm, measured in the same run with the same\n"
      "threads. A law whose check fails is not timed.\nExample:\n  isomer bench --law attention --threads 1 --quick\n"
      "  isomer bench --train --preset gla --quick");
  return [request] { return bench_request(*request); };
}

}  // namespace isomer::cli
