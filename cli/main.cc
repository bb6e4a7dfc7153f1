// isomer: finds the subcommand, runs it, and turns every failure into one line and a status.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <stdexcept>

#include "cli/command.h"
#include "isomer/base/error.h"
#include "isomer/base/suggest.h"

namespace isomer::cli {

namespace {
/// One line on stderr, whatever the names in files and arguments are made of.
int complain(const std::string& who, std::string text, Status status) {
  // Some commands are called like what they call: `isomer convert` fails in convert().
  if (const std::string again = who.substr(who.rfind(' ') + 1) + ": "; text.starts_with(again)) text.erase(0, again.size());
  constexpr std::size_t kLongest = 1000;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " …";
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  std::fprintf(stderr, "%s: %s\n", who.c_str(), text.c_str());
  return status;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

/// CLI11 would list what it did not expect; the nearest name helps more.
void refuse_extras(const CLI::App& app) {
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with("-")) {
      const std::string name = extra.substr(0, extra.find('='));
      throw Error("unknown option " + name + did_you_mean(name, option_names(app)));
    }
    if (app.get_parent() == nullptr) throw Error("unknown command " + extra + did_you_mean(extra, command_names(app)));
    throw Error("unexpected argument " + extra);
  }
}

struct Entry {
  CLI::App* app;
  Command run;
};

Entry add(CLI::App& app, const char* name, const char* help, Command (*declare)(CLI::App&)) {
  CLI::App* command = app.add_subcommand(name, help);
  command->allow_extras();
  return {command, declare(*command)};
}

int run(CLI::App& app, const std::vector<Entry>& commands) {
  refuse_extras(app);
  for (const Entry& command : commands) {
    if (!command.app->parsed()) continue;
    refuse_extras(*command.app);
    const int status = command.run();
    // What was printed last may be waiting still, and a full disk only shows then.
    if (status == kDone && (!std::cout.flush() || std::fflush(stdout) != 0)) throw std::runtime_error("cannot write the output");
    return status;
  }
  throw Error("expected a command (isomer --help lists them), got none");
}

int program(int argc, char** argv) {
  // A file that meets a size limit is then an error of write(), which cleans up, instead of the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(
      "Attention-family laws and layers on a CPU: apply them, check them, time them, look at them, train models of them.",
      "isomer");
  app.set_version_flag("--version", "isomer " ISOMER_VERSION);
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer("Example:\n  isomer check attention\n\n`isomer COMMAND --help` says more.");
  const std::vector<Entry> commands{add(app, "apply", "Run a law on the tensors of a file", apply_command),
                                    add(app, "check", "Compare every form of a law with its double reference", check_command),
                                    add(app, "bench", "Time laws", bench_command),
                                    add(app, "list", "The mixers and what a layer of each costs", list_command),
                                    add(app, "show", "A mixer: options, equations, costs, forms", show_command),
                                    add(app, "tasks", "List the tasks, show a task's options and examples", tasks_command),
                                    add(app, "train", "Train the model of a recipe", train_command),
                                    add(app, "sweep", "Train every combination of a grid", sweep_command),
                                    add(app, "eval", "Score a run on its task or on another", eval_command),
                                    add(app, "generate", "Stream tokens from a run", generate_command),
                                    add(app, "convert", "Other mixers in a trained model", convert_command),
                                    add(app, "runs", "A table of runs", runs_command),
                                    add(app, "completion", "A script that lets a shell complete commands", completion_command)};
  const auto who = [&] {
    for (const Entry& command : commands)
      if (command.app->parsed()) return "isomer " + command.app->get_name();
    return std::string("isomer");
  };
  try {
    app.parse(argc, argv);
    return run(app, commands);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    return complain(who(), problem.what(), kWrongRequest);
  } catch (const Error& problem) {
    return complain(who(), problem.what(), kWrongRequest);
  } catch (const std::bad_alloc&) {
    return complain(who(), "out of memory", kFailed);
  } catch (const std::exception& problem) {
    return complain(who(), problem.what(), kFailed);
  }
}
}  // namespace

void add_threads(CLI::App& app, int& threads, const std::string& what) {
  // Far above any machine; a mistyped number should not start a million threads.
  app.add_option("--threads", threads, what + "; all cores if not given")->check(CLI::Range(1, 1024))->type_name("N");
}

void require_at_least(CLI::Option& option, Index least) {
  option.check([least](const std::string& text) {
    Index value = 0;
    const bool fits = parse_number(text, value) && value >= least;
    return fits ? std::string() : "expected a whole number of at least " + std::to_string(least) + ", got " + text;
  });
}

void add_set(CLI::App& app, std::vector<std::string>& set, const std::string& help) {
  app.add_option("--set", set, help)->type_name("KEY=VALUE")->allow_extra_args(false);
}

Settings settings_of(const std::vector<std::string>& set) {
  Settings settings;
  for (const std::string& pair : set) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) throw Error("expected --set key=value, got " + pair);
    const std::string key = pair.substr(0, equals);
    if (!settings.emplace(key, pair.substr(equals + 1)).second) throw Error("option " + key + " is set twice");
  }
  return settings;
}

}  // namespace isomer::cli

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be said on the terminal ends the program
int main(int argc, char** argv) { return isomer::cli::program(argc, argv); }
