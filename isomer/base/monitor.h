#pragma once
// How long work tells where it is, and how it is told to stop.
//
//   std::atomic<bool> stop = false;
//   const std::vector<LawRow> rows = bench_laws(plan, context, {.progress = [](const std::string& what) { … }, .stop =
//   &stop}).rows;
#include <atomic>
#include <functional>
#include <string>

namespace isomer {

struct Monitor {
  std::function<void(const std::string&)> progress = {};  // what begins now; called by the thread that does the work
  const std::atomic<bool>* stop = nullptr;                // once it is true, the work ends after the piece that it is at

  void show(const std::string& what) const {
    if (progress) progress(what);
  }
  [[nodiscard]] bool stopped() const { return stop != nullptr && stop->load(); }
};

}  // namespace isomer
