#pragma once
// Where the time of a tape's ops goes. What is neither a product nor a law is the rest of the time that the caller measures.
//
//   Profile profile;
//   tape.profile(&profile);
//   tape.backward(loss(tape));
//   const double other = 1 - profile.total() / watch.seconds();  // the share of everything else
#include <array>
#include <cstdint>

#include "isomer/base/stopwatch.h"

namespace isomer {

class Profile {
 public:
  enum class Kind : std::uint8_t { product, law };

  template <class F>
  void time(Kind kind, F f) {
    const Stopwatch watch;
    f();
    seconds_[std::size_t(kind)] += watch.seconds();
  }
  [[nodiscard]] double seconds(Kind kind) const { return seconds_[std::size_t(kind)]; }
  [[nodiscard]] double total() const { return seconds_[0] + seconds_[1]; }
  void clear() { seconds_ = {}; }

 private:
  std::array<double, 2> seconds_{};
};

}  // namespace isomer
