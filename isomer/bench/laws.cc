#include "isomer/bench/laws.h"

#include "isomer/base/format.h"
#include "isomer/kernels/gemm/peak.h"
#include "isomer/laws/check.h"

namespace isomer {

namespace {
/// Why the law must not be timed; empty if it may.
std::string red_row(const Law& law, Context& context) {
  for (const CheckRow& row : check(law, context, {.types = {Type::f32}}))
    if (!row.pass)
      return row.form + " " + row.quantity + " is off by " + formatted("%.1e", row.error) + " (limit " +
             formatted("%.1e", row.limit) + ") in case " + row.worst;
  return {};
}

std::string full_title(const BenchCase& c) {
  return c.subject + " " + c.variant + " " + c.direction + " T=" + std::to_string(c.T) + " " + std::to_string(c.H) + "x" +
         std::to_string(c.K);
}

std::vector<BenchCase> law_cases(const Law& law, const LawBench& plan) {
  std::vector<BenchCase> cases = law.bench_cases(plan.quick);
  if (!plan.form) return cases;
  const bool other = *plan.form != Form::step;
  // A form that no case has by itself is timed on the cases of the chunk form.
  std::erase_if(cases, [&](const BenchCase& c) { return (c.form == Form::step) == other; });
  for (BenchCase& c : cases) c.form = *plan.form;
  return cases;
}

void time_law(const Law& law, const LawBench& plan, Context& context, const Monitor& monitor, std::vector<LawRow>& rows) {
  // The clock of a machine drifts with its load, so every law has the peak of its own minute.
  monitor.show("the sgemm peak");
  const double peak = measure_peak(context);
  for (const BenchCase& what : law_cases(law, plan)) {
    if (monitor.stopped()) return;
    monitor.show(full_title(what));
    const BenchWork work = law.prepare(what);
    const Timing timing = measure(work, context, plan.quick ? 0.2 : 1.0);
    const double gflops = work.flops / timing.median / 1e9;
    rows.push_back({.what = what,
                    .threads = context.threads(),
                    .timing = timing,
                    .us_per_token = timing.median * 1e6 / double(what.B * what.T),
                    .gflops = gflops,
                    .peak_share = gflops / peak,
                    .state_bytes = work.state_bytes});
  }
}
}  // namespace

Cells cells_of(const LawRow& row) {
  const BenchCase& c = row.what;
  return {{"law", c.subject},
          {"variant", c.variant},
          {"form", std::string(name_of(c.form))},
          {"direction", c.direction},
          {"B", std::to_string(c.B)},
          {"T", std::to_string(c.T)},
          {"H", std::to_string(c.H)},
          {"K", std::to_string(c.K)},
          {"V", std::to_string(c.V)},
          {"threads", std::to_string(row.threads)},
          {"µs/token", formatted("%.3f", row.us_per_token)},
          {"±", formatted("%.1f%%", 100 * row.timing.spread / row.timing.median)},
          {"GFLOP/s", formatted("%.1f", row.gflops)},
          {"of peak", percent(row.peak_share)},
          {"state bytes", formatted("%.0f", row.state_bytes)}};
}

Json to_json(const LawRow& row) {
  const BenchCase& c = row.what;
  return Json::object({{"subject", c.subject},
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
                       {"threads", row.threads},
                       {"type", "f32"},
                       {"us_per_token", row.us_per_token},
                       {"spread_us", row.timing.spread * 1e6 / double(c.B * c.T)},
                       {"samples", row.timing.samples},
                       {"gflops", row.gflops},
                       {"peak_share", row.peak_share},
                       {"state_bytes", row.state_bytes},
                       {"peer", nullptr},
                       {"ratio", nullptr}});
}

BenchRows<LawRow> bench_laws(const LawBench& plan, Context& context, const Monitor& monitor) {
  BenchRows<LawRow> result;
  std::vector<const Law*> some = plan.laws;
  if (some.empty()) some.assign(laws().begin(), laws().end());
  for (const Law* law : some) {
    if (monitor.stopped()) break;
    const std::string name(law->name());
    monitor.show("checking " + name + " before it is timed");
    if (const std::string red = red_row(*law, context); red.empty())
      time_law(*law, plan, context, monitor, result.rows);
    else
      result.refused += (result.refused.empty() ? "" : "; ") + name + " is not timed because its check fails: " + red;
  }
  return result;
}

}  // namespace isomer
