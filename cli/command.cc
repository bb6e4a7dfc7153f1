#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "isomer/base/error.h"
#include "isomer/base/machine.h"
#include "isomer/base/suggest.h"
#include "isomer/models/not_finite.h"

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

std::vector<Entry> declared(CLI::App& app, const std::vector<CommandEntry>& commands) {
  app.set_version_flag("--version", "isomer " + std::string(version()));
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer("Example:\n  isomer check attention\n\n`isomer COMMAND --help` says more.");
  std::vector<Entry> entries;
  for (const CommandEntry& command : commands) {
    CLI::App* const own = app.add_subcommand(command.name, command.help);
    own->allow_extras();
    Options options(*own);
    entries.push_back({own, command.declare(options)});
  }
  return entries;
}

template <class T>
Option added(CLI::App& app, const std::string& name, T& target, const std::string& help) {
  return Option(*app.add_option(name, target, help));
}
}  // namespace

int run_program(int argc, char** argv, const std::vector<CommandEntry>& commands) {
  // A file that meets a size limit is then an error of write(), which cleans up, instead of the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(
      "Attention-family laws and layers on a CPU: apply them, check them, time them, look at them, train models of them.",
      "isomer");
  const std::vector<Entry> entries = declared(app, commands);
  const auto who = [&] {
    for (const Entry& entry : entries)
      if (entry.app->parsed()) return "isomer " + entry.app->get_name();
    return std::string("isomer");
  };
  try {
    app.parse(argc, argv);
    return run(app, entries);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    return complain(who(), problem.what(), kWrongRequest);
  } catch (const NotFinite& problem) {
    return complain(who(), problem.what(), kFailed);
  } catch (const Error& problem) {
    return complain(who(), problem.what(), kWrongRequest);
  } catch (const std::bad_alloc&) {
    return complain(who(), "out of memory", kFailed);
  } catch (const std::exception& problem) {
    return complain(who(), problem.what(), kFailed);
  }
}

const Option& Option::value(const char* name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::repeated() const {
  option_->allow_extra_args(false);
  return *this;
}

const Option& Option::from_to(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

const Option& Option::at_least(Index least) const {
  // CLI11's own check answers with the largest double, all digits of it.
  option_->check([least](const std::string& text) {
    Index value = 0;
    const bool fits = parse_number(text, value) && value >= least;
    return fits ? std::string() : "expected a whole number of at least " + std::to_string(least) + ", got " + text;
  });
  return *this;
}

const Option& Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

const Option& Option::not_empty() const {
  option_->check([](const std::string& text) { return text.empty() ? std::string("expected a name, got none") : std::string(); });
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Options::add(const std::string& name, std::string& target, const std::string& help) {
  return added(*app_, name, target, help);
}
Option Options::add(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  return added(*app_, name, target, help);
}
Option Options::add(const std::string& name, int& target, const std::string& help) { return added(*app_, name, target, help); }
Option Options::add(const std::string& name, Index& target, const std::string& help) { return added(*app_, name, target, help); }
Option Options::add(const std::string& name, std::optional<Index>& target, const std::string& help) {
  return added(*app_, name, target, help);
}
Option Options::add(const std::string& name, std::uint64_t& target, const std::string& help) {
  return added(*app_, name, target, help);
}
Option Options::add(const std::string& name, double& target, const std::string& help) { return added(*app_, name, target, help); }
Option Options::flag(const std::string& name, bool& target, const std::string& help) {
  return Option(*app_->add_flag(name, target, help));
}

void Options::threads(int& target, const std::string& what) {
  // Far above any machine; a mistyped number should not start a million threads.
  add("--threads", target, what + "; all cores if not given").from_to(1, 1024).value("N");
}

void Options::set(std::vector<std::string>& target, const std::string& help) {
  add("--set", target, help).value("KEY=VALUE").repeated();
}

void Options::table(TableOutput& target) {
  const Option json = flag("--json", target.json, "Print one JSON object");
  flag("--csv", target.csv, "Print comma-separated values").excludes(json);
}

void Options::footer(const std::string& text) { app_->footer(text); }

std::vector<Options::Named> Options::whole_program() const {
  std::vector<Named> all;
  for (const CLI::App* command : app_->get_parent()->get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back({command->get_name(), {}});
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        all.back().options.push_back("--" + name + (option->get_items_expected_max() > 0 ? "=" : ""));
  }
  return all;
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
