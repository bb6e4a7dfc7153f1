#include "isomer/train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/text.h"

namespace isomer {

namespace {
Metric metric_named(const std::string& name) {
  for (const Metric metric :
       {Metric::token_accuracy, Metric::example_accuracy, Metric::exact, Metric::squared_error, Metric::bits_per_token})
    if (name_of(metric) == name) return metric;
  throw Error("expected a metric of a task, got " + name);
}

/// A missing number counts as one that is not known.
double number_in(const Json& from, const char* key) {
  const Json* const found = from.find(key);
  return found == nullptr ? Json().number() : found->number();
}

// Keys stand in the order of the alphabet.
Json json_of(const StepLine& line) {
  return Json::object({{"grad_norm", line.gradient_norm},
                       {"loss", line.loss},
                       {"lr", line.lr},
                       {"seconds", line.seconds},
                       {"step", line.step},
                       {"tokens_per_s", line.tokens_per_second}});
}

Json json_of(const EvalLine& line) {
  const Json eval =
      Json::object({{"examples", line.examples}, {"loss", line.loss}, {"metric", name_of(line.metric)}, {"value", line.value}});
  return Json::object({{"eval", eval}, {"seconds", line.seconds}, {"step", line.step}});
}

Json json_of(const FailedLine& line) {
  return Json::object({{"failed", line.reason}, {"seconds", line.seconds}, {"step", line.step}});
}

MetricsLine eval_line(const Json& line, const Json& eval) {
  const Json* const examples = eval.find("examples");
  return EvalLine{.step = line.at("step").integer(),
                  .loss = number_in(eval, "loss"),
                  .value = number_in(eval, "value"),
                  .metric = metric_named(eval.at("metric").text()),
                  .examples = examples == nullptr ? 0 : examples->integer(),
                  .seconds = number_in(line, "seconds")};
}
}  // namespace

Index step_of(const MetricsLine& line) {
  return std::visit([](const auto& held) { return held.step; }, line);
}

double seconds_of(const MetricsLine& line) {
  return std::visit([](const auto& held) { return held.seconds; }, line);
}

std::string to_json(const MetricsLine& line) {
  return std::visit([](const auto& held) { return json_of(held).dump(); }, line);
}

MetricsLine parse_metrics_line(const std::string& text) {
  const Json line = Json::parse(text, "line");
  if (const Json* const eval = line.find("eval")) return eval_line(line, *eval);
  if (const Json* const reason = line.find("failed"))
    return FailedLine{.step = line.at("step").integer(), .reason = reason->text(), .seconds = number_in(line, "seconds")};
  if (line.find("loss") == nullptr) throw Error("expected loss, eval or failed, got none of them");
  return StepLine{.step = line.at("step").integer(),
                  .loss = number_in(line, "loss"),
                  .lr = number_in(line, "lr"),
                  .gradient_norm = number_in(line, "grad_norm"),
                  .tokens_per_second = number_in(line, "tokens_per_s"),
                  .seconds = number_in(line, "seconds")};
}

void MetricsFile::append(const MetricsLine& line) const {
  const auto cannot_write = [&](int problem) { throw Error("cannot write " + path_ + ": " + std::strerror(problem)); };
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) cannot_write(errno);
  const std::string text = to_json(line) + "\n";
  const auto written = ::write(file, text.data(), text.size());
  const int problem = written < 0 ? errno : ENOSPC;
  ::close(file);
  if (written != ssize_t(text.size())) cannot_write(problem);
}

std::vector<std::string> MetricsFile::lines() const {
  std::vector<std::string> lines;
  if (!is_there(path_)) return lines;
  const std::string text = read_text(path_);
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return lines;
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::vector<MetricsLine> MetricsFile::read() const {
  std::vector<MetricsLine> all;
  for (const std::string& text : lines()) {
    try {
      all.push_back(parse_metrics_line(text));
    } catch (const Error& problem) {
      throw Error(path_ + ":" + std::to_string(all.size() + 1) + ": " + problem.what());
    }
  }
  return all;
}

std::size_t MetricsFile::size() const { return lines().size(); }

void MetricsFile::keep(std::size_t count) const {
  const std::vector<std::string> there = lines();
  std::string text;
  for (std::size_t i = 0; i < std::min(count, there.size()); ++i) text += there[i] + "\n";
  write_text(path_, text);
}

}  // namespace isomer
