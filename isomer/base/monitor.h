#pragma once
// How long work tells where it is, and how it is told to stop.
//
//   const Monitor monitor{.progress = [&](const std::string& what) { show(what); }, .stop = &stop};  // an atomic
//   const std::vector<CheckRow> rows = check_named({"scan", "gla"}, context, monitor);               // bench/check.h
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
