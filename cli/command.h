#pragma once
// A subcommand is one file with one function: it declares its options on `app` and returns what runs when they have been read.
// The return value is the exit status. An isomer::Error is a wrong request (status 2), a RunFailed a run that failed (status 1);
// main prints either as one line.
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "isomer/base/index.h"
#include "isomer/base/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace isomer::cli {

enum Status { kDone = 0, kFailed = 1, kWrongRequest = 2 };

class RunFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Command = std::function<int()>;

[[nodiscard]] Command apply_command(CLI::App& app);
[[nodiscard]] Command check_command(CLI::App& app);
[[nodiscard]] Command bench_command(CLI::App& app);
[[nodiscard]] Command train_command(CLI::App& app);
[[nodiscard]] Command sweep_command(CLI::App& app);
[[nodiscard]] Command eval_command(CLI::App& app);
[[nodiscard]] Command generate_command(CLI::App& app);
[[nodiscard]] Command convert_command(CLI::App& app);
[[nodiscard]] Command runs_command(CLI::App& app);
[[nodiscard]] Command list_command(CLI::App& app);
[[nodiscard]] Command show_command(CLI::App& app);
[[nodiscard]] Command tasks_command(CLI::App& app);
[[nodiscard]] Command completion_command(CLI::App& app);

/// Declares --threads; 0 stands for all cores.
void add_threads(CLI::App& app, int& threads, const std::string& what = "How many threads");
/// The option takes whole numbers from `least` on. (CLI11's own check answers with the largest double, all digits of it.)
void require_at_least(CLI::Option& option, Index least);
/// Declares --set key=value, which may be repeated; settings_of reads what was given.
void add_set(CLI::App& app, std::vector<std::string>& set, const std::string& help);
[[nodiscard]] Settings settings_of(const std::vector<std::string>& set);

}  // namespace isomer::cli
