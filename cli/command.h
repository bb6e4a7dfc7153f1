#pragma once
// A subcommand is one file with one function: it declares its options and returns what runs when they have been read. The return
// value is the exit status. An isomer::Error is a wrong request (status 2), a RunFailed a run that failed and a NotFinite what
// spoils one (status 1); each is printed as one line.
//
//   Command eval_command(Options& options) {
//     auto request = std::make_shared<Request>();
//     options.add("run", request->run, "Folder of a run").required();
//     options.add("--examples", request->examples, "Test examples [1024]").value("N").at_least(1);
//     return [request] { return eval_request(*request); };
//   }
//
// The parser of the command line is compiled in command.cc alone.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// An option that has been declared; what is said of it afterwards.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  /// What --help calls its value.
  const Option& value(const char* name) const;
  const Option& required() const;
  /// It may be repeated, with one value each time.
  const Option& repeated() const;
  const Option& from_to(int least, int most) const;
  /// A whole number.
  const Option& at_least(Index least) const;
  const Option& one_of(const std::vector<std::string>& values) const;
  const Option& excludes(const Option& other) const;
  const Option& not_empty() const;

 private:
  CLI::Option* option_;
};

/// How a table is printed.
struct TableOutput {
  bool json = false, csv = false;
  [[nodiscard]] bool for_people() const { return !json && !csv; }
};

/// The options of a subcommand. A name without dashes is an argument.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(&app) {}
  Option add(const std::string& name, std::string& target, const std::string& help);
  Option add(const std::string& name, std::vector<std::string>& target, const std::string& help);
  Option add(const std::string& name, int& target, const std::string& help);
  Option add(const std::string& name, Index& target, const std::string& help);
  Option add(const std::string& name, std::optional<Index>& target, const std::string& help);
  Option add(const std::string& name, std::uint64_t& target, const std::string& help);
  Option add(const std::string& name, double& target, const std::string& help);
  Option flag(const std::string& name, bool& target, const std::string& help);
  /// --threads; 0 stands for all cores.
  void threads(int& target, const std::string& what = "How many threads");
  /// --set key=value, which may be repeated; settings_of reads what was given.
  void set(std::vector<std::string>& target, const std::string& help);
  /// --json and --csv.
  void table(TableOutput& target);
  /// Below the options in --help: an example at least.
  void footer(const std::string& text);

  struct Named {
    std::string command;
    std::vector<std::string> options;  // "--json", "--threads=" where a value follows
  };
  /// Every command of the program with its options.
  [[nodiscard]] std::vector<Named> whole_program() const;

 private:
  CLI::App* app_;
};

using Command = std::function<int()>;

struct CommandEntry {
  const char *name, *help;
  Command (*declare)(Options&);
};

/// Finds the command, runs it, and turns every failure into one line and a status.
[[nodiscard]] int run_program(int argc, char** argv, const std::vector<CommandEntry>& commands);

[[nodiscard]] Settings settings_of(const std::vector<std::string>& set);

[[nodiscard]] Command apply_command(Options& options);
[[nodiscard]] Command check_command(Options& options);
[[nodiscard]] Command bench_command(Options& options);
[[nodiscard]] Command train_command(Options& options);
[[nodiscard]] Command sweep_command(Options& options);
[[nodiscard]] Command eval_command(Options& options);
[[nodiscard]] Command generate_command(Options& options);
[[nodiscard]] Command logits_command(Options& options);
[[nodiscard]] Command classify_command(Options& options);
[[nodiscard]] Command tokenizer_command(Options& options);
[[nodiscard]] Command convert_command(Options& options);
[[nodiscard]] Command export_command(Options& options);
[[nodiscard]] Command runs_command(Options& options);
[[nodiscard]] Command list_command(Options& options);
[[nodiscard]] Command show_command(Options& options);
[[nodiscard]] Command tasks_command(Options& options);
[[nodiscard]] Command study_command(Options& options);
[[nodiscard]] Command report_command(Options& options);
[[nodiscard]] Command explore_command(Options& options);
[[nodiscard]] Command run_command(Options& options);
[[nodiscard]] Command completion_command(Options& options);

}  // namespace isomer::cli
