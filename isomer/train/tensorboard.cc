#include "isomer/train/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "isomer/base/error.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// TensorBoard takes every file with "tfevents" in its name, in the order of names.
std::string file_name(double time) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return "events.out.tfevents." + std::to_string(std::int64_t(time)) + "." + host.data() + "." + std::to_string(::getpid());
}

std::vector<EventScalar> scalars_of(const StepLine& line) {
  return {{"train/loss", line.loss},
          {"train/lr", line.lr},
          {"train/grad_norm", line.gradient_norm},
          {"train/tokens_per_s", line.tokens_per_second}};
}

std::vector<EventScalar> scalars_of(const EvalLine& line) {
  std::string metric(name_of(line.metric));
  std::ranges::replace(metric, ' ', '_');
  return {{"eval/loss", line.loss}, {"eval/" + metric, line.value}};
}

std::vector<EventScalar> scalars_of(const FailedLine&) { return {}; }
}  // namespace

Tensorboard::Tensorboard(const RunFolder& folder) : start_(now()) {
  const fs::path path = path_in(folder);
  const std::vector<MetricsLine> lines = folder.metrics().read();
  const double begin = start_;
  if (!lines.empty()) start_ -= seconds_of(lines.back());
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) throw Error("cannot write " + path.string() + ": " + problem.message());
  for (const auto& entry : fs::directory_iterator(path, problem))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) fs::remove(entry.path(), problem);
  file_ = std::make_unique<EventFile>((path / file_name(begin)).string(), start_);
  for (const MetricsLine& line : lines) add(line);
}

void Tensorboard::add(const MetricsLine& line) {
  Event event{.step = step_of(line),
              .wall_time = start_ + seconds_of(line),
              .scalars = std::visit([](const auto& held) { return scalars_of(held); }, line)};
  // What is not finite is not known.
  std::erase_if(event.scalars, [](const EventScalar& scalar) { return !std::isfinite(scalar.value); });
  if (!event.scalars.empty()) file_->add(event);
}

}  // namespace isomer
