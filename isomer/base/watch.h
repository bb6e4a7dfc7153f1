#pragma once
// How a long call is ended by someone who waits for it, such as a user who presses Ctrl-C.
//
//   const Watch watch([] {
//     if (asked_to_end) throw Ended();
//   });
//   bound->forward(in, out, {.context = context});  // throws Ended soon after it was asked to
//
// What the call was writing is to be thrown away.
//
// The thread that calls passes points where it may stop: between the tasks of a Context, while it waits for the Context's other
// threads, within tasks that may take long, and between the tokens of references. Threads that work for it pass the last ones,
// too, and stop there once it has. There is nothing to pay where nobody watches.
#include <atomic>
#include <chrono>

namespace isomer {

/// For as long as it lives, `look` is called by this thread at most five times a second; what it throws ends the call that it is
/// in. Null: nobody looks.
class Watch {
 public:
  explicit Watch(void (*look)());
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  static constexpr std::chrono::milliseconds kPause{200};

 private:
  friend void may_stop();
  friend bool watched();
  void (*look_)();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  Watch* outer_;
};

/// For as long as it lives, this thread works for another, and may_stop() throws what nobody needs to look at once `ended`.
class Follow {
 public:
  explicit Follow(const std::atomic<bool>& ended);
  ~Follow();
  Follow(const Follow&) = delete;
  Follow& operator=(const Follow&) = delete;
};

/// A point where the calling thread may stop: throws what its watch throws.
void may_stop();
/// Whether there is a watch.
[[nodiscard]] bool watched();

}  // namespace isomer
