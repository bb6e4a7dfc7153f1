#include "isomer/train/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "isomer/base/error.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;
using nlohmann::json;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// TensorBoard takes every file with "tfevents" in its name, in the order of names.
std::string file_name(double time) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return "events.out.tfevents." + std::to_string(std::int64_t(time)) + "." + host.data() + "." + std::to_string(::getpid());
}

std::vector<EventScalar> scalars_of(const json& line) {
  std::vector<EventScalar> scalars;
  const auto take = [&](const json& from, const char* key, const std::string& tag) {
    const auto found = from.find(key);
    if (found != from.end() && found->is_number()) scalars.push_back({tag, found->get<double>()});
  };
  for (const char* key : {"loss", "lr", "grad_norm", "tokens_per_s"}) take(line, key, std::string("train/") + key);
  const auto eval = line.find("eval");
  if (eval == line.end() || !eval->is_object()) return scalars;
  take(*eval, "loss", "eval/loss");
  std::string metric = eval->value("metric", "metric");
  std::ranges::replace(metric, ' ', '_');
  take(*eval, "value", "eval/" + metric);
  return scalars;
}

double seconds_of(const std::vector<std::string>& lines) {
  const json last = lines.empty() ? json() : json::parse(lines.back(), nullptr, false);
  return last.is_object() ? last.value("seconds", 0.0) : 0.0;
}
}  // namespace

Tensorboard::Tensorboard(const RunFolder& folder) : start_(now()) {
  const fs::path path = path_in(folder);
  const std::vector<std::string> lines = folder.metrics();
  const double begin = start_;
  start_ -= seconds_of(lines);
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) throw Error("cannot write " + path.string() + ": " + problem.message());
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) fs::remove(entry.path(), problem);
  file_ = std::make_unique<EventFile>((path / file_name(begin)).string(), start_);
  for (const std::string& line : lines) add(line);
}

void Tensorboard::add(const std::string& json_line) {
  const json line = json::parse(json_line, nullptr, false);
  if (!line.is_object()) return;
  Event event{
      .step = line.value("step", Index{0}), .wall_time = start_ + line.value("seconds", 0.0), .scalars = scalars_of(line)};
  if (!event.scalars.empty()) file_->add(event);
}

}  // namespace isomer
