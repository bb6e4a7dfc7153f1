// isomer sweep: every combination of a grid trained as a run of its own, some at a time.
#include "isomer/train/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "isomer/base/context.h"
#include "isomer/base/error.h"
#include "isomer/io/text.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string recipe, out;
  std::vector<std::string> grid, settings;
  int jobs = 1, threads = 0, seeds = 0;
  bool tensorboard = false;
  TableOutput output;
};

std::string command_of(const Request& request) {
  std::string text = "isomer sweep " + quoted(request.recipe);
  for (const std::string& axis : request.grid) text += " --grid " + quoted(axis);
  for (const std::string& setting : request.settings) text += " --set " + quoted(setting);
  if (request.seeds > 0) text += " --seeds " + std::to_string(request.seeds);
  text += " --jobs " + std::to_string(request.jobs);
  if (request.threads > 0) text += " --threads " + std::to_string(request.threads);
  if (request.tensorboard) text += " --tensorboard";
  return text + " --out " + quoted(request.out);
}

void write_record(const Request& request, const std::vector<SweepRow>& rows) {
  Json all = table_json(machine_of(Context(1)), rows_json(rows));
  if (request.seeds > 0) all.set("groups", rows_json(sweep_groups(rows)));
  all.set("command", command_of(request));
  write_text(request.out + "/sweep.json", all.dump(1) + "\n");
}

std::string line_of(const SweepProgress& at) {
  std::string text = at.stopping ? "stopping, " : "";
  text += std::to_string(at.done) + "/" + std::to_string(at.all) + " done";
  if (at.seconds_left >= 0) text += "  left " + clock_of(at.seconds_left);
  for (const SweepProgress::Busy& one : at.busy) {
    text += "  | " + one.name + " " + std::to_string(one.step) + "/" + std::to_string(one.steps);
    if (one.step > 0) text += " loss " + text_of(one.loss);
  }
  return text;
}

/// Trains and tells how it goes. Was it stopped?
bool train_and_tell(std::vector<SweepRun>& runs, const Request& request) {
  const int cores = request.threads > 0 ? request.threads : std::max(1, int(std::thread::hardware_concurrency()));
  // The same program even if another has taken its place on the disk meanwhile.
  const SweepOptions options{
      .jobs = request.jobs, .threads = cores, .tensorboard = request.tensorboard, .program = "/proc/self/exe"};
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const Progress progress;
  SweepEvents events;
  events.found = [](std::size_t finished, std::size_t all) {
    if (finished > 0) std::cerr << finished << " of " << all << " runs are there already\n";
  };
  events.ended = [&](const SweepRun& run, SweepEvents::End end) {
    using End = SweepEvents::End;
    if (terminal) progress.show("");
    std::cerr << run.point.name
              << (end == End::done      ? " is done"
                  : end == End::stopped ? " has stopped"
                                        : " failed: " + run.problem)
              << "\n";
    write_record(request, sweep_rows(runs));
  };
  if (terminal) {
    events.progress = [&](const SweepProgress& at) { progress.show(line_of(at)); };
  } else {
    events.started = [](const SweepRun& run) { std::cerr << run.point.name << " starts\n"; };
  }
  return train_all(runs, options, events, watch_for_interrupt());
}

/// The axes of the grid, and the seeds from that of the recipe on.
std::vector<GridAxis> axes_of(const Request& request) {
  std::vector<GridAxis> axes = parse_grid(request.grid);
  if (request.seeds == 0) return axes;
  for (const GridAxis& axis : axes)
    if (axis.key == "train.seed") throw Error("--seeds: expected no axis " + axis.name + " in --grid beside it, got one");
  GridAxis& seeds = axes.emplace_back(GridAxis{"seed", "train.seed", {}});
  const std::uint64_t first = read_recipe(request.recipe, request.settings).train.seed;
  for (int i = 0; i < request.seeds; ++i) seeds.values.push_back(std::to_string(first + std::uint64_t(i)));
  return axes;
}

int sweep_request(Request request) {
  namespace fs = std::filesystem;
  if (request.out.empty()) request.out = "runs/" + fs::path(request.recipe).stem().string() + "-sweep";
  std::vector<SweepRun> runs = sweep_runs(grid_of(axes_of(request), request.recipe, request.settings), request.out);
  std::error_code problem;
  fs::create_directories(request.out, problem);
  if (problem) throw RunFailed("cannot write " + request.out + ": " + problem.message());
  const bool stopped = train_and_tell(runs, request);
  const std::vector<SweepRow> rows = sweep_rows(runs);
  write_record(request, rows);
  if (request.seeds == 0) {
    print_rows(Context(1), rows_json(rows), request.output, sweep_text(rows));
  } else {
    const std::vector<SweepGroup> groups = sweep_groups(rows);
    print_rows(Context(1), rows_json(groups), request.output, groups_text(groups));
  }
  if (stopped) std::cerr << "stopped; go on with: " << command_of(request) << "\n";
  return std::ranges::all_of(rows, &SweepRow::finished) ? kDone : kFailed;
}
}  // namespace

Command sweep_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("recipe", request->recipe, "TOML file with model, task and training").required();
  options
      .add("--grid", request->grid,
           "KEY=VALUE,VALUE,… of the recipe; may be repeated, also within one: lr=1e-3,3e-3,seed=1,2. "
           "mixer sets the preset of every layer; '+' goes between layers: layers=gla+softmax,mlstm")
      .required()
      .value("AXIS")
      .repeated();
  options.set(request->settings, "Override a key of the recipe for every run; may be repeated");
  options.add("--seeds", request->seeds, "Train every combination with so many seeds: mean ± deviation over them")
      .from_to(1, 1000)
      .value("N");
  options.add("--jobs", request->jobs, "Runs at a time [1]").from_to(1, 1024).value("N");
  options.threads(request->threads, "Threads of all runs together");
  options.add("--out", request->out, "Folder of the runs and of sweep.json [runs/NAME-sweep]").value("DIR").not_empty();
  options.flag("--tensorboard", request->tensorboard, "Write event files for TensorBoard too");
  options.table(request->output);
  options.footer(
      "What is there already is not trained again: the same command goes on after a stop.\n\n"
      "Example:\n  isomer sweep recipes/mqar.toml --grid mixer=softmax,gla,lr=1e-3,3e-3 --seeds 3 --jobs 2");
  return [request] { return sweep_request(*request); };
}

}  // namespace isomer::cli
