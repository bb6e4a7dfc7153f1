#include "isomer/base/watch.h"

#include <utility>

namespace isomer {

namespace {
thread_local Watch* current = nullptr;
thread_local const std::atomic<bool>* followed = nullptr;

struct Ended {};
}  // namespace

Watch::Watch(void (*look)()) : look_(look), outer_(std::exchange(current, this)) {}
Watch::~Watch() { current = outer_; }

Follow::Follow(const std::atomic<bool>& ended) { followed = &ended; }
Follow::~Follow() { followed = nullptr; }

bool watched() { return current != nullptr && current->look_ != nullptr; }

void may_stop() {
  if (followed != nullptr && followed->load(std::memory_order_relaxed)) throw Ended();
  if (!watched()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - current->last_ < Watch::kPause) return;
  current->last_ = now;
  current->look_();
}

}  // namespace isomer
