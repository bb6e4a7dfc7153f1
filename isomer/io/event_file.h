#pragma once
// A file of TensorBoard: records of TensorFlow (length and content, each with a checksum) that hold `Event` messages with
// numbers.
//
//   EventFile file("runs/a/tensorboard/events.out.tfevents.1700000000.host.42", 1.7e9);
//   file.add({.step = 10, .wall_time = 1.7e9, .scalars = {{"train/loss", 2.5}}});
//
// Only what is needed of the format: no histograms, pictures or graphs.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isomer/base/index.h"

namespace isomer {

struct EventScalar {
  std::string tag;
  double value;  // stored as a float
};

struct Event {
  Index step = 0;
  double wall_time = 0;  // seconds since 1970
  std::vector<EventScalar> scalars;
};

/// The checksum of Castagnoli, as in iSCSI and in TensorFlow's records.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

class EventFile {
 public:
  /// Replaces what is there, and tells readers to forget what earlier files of the folder said. Throws Error "cannot write PATH:
  /// reason", as add() does.
  EventFile(std::string path, double wall_time);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Complete when it returns, as far as this process is concerned.
  void add(const Event& event);

 private:
  void write(const std::string& message);
  std::string path_;
  int file_ = -1;
};

}  // namespace isomer
