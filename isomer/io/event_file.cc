#include "isomer/io/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "isomer/base/error.h"

namespace isomer {

namespace {
/// Numbers of the fields in tensorflow/core/util/event.proto and framework/summary.proto.
enum Field {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7,
  kValue = 1,
  kTag = 1,
  kSimpleValue = 2,
  kStatus = 1
};
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr int kStart = 1;  // SessionLog.START

template <class T>
void append_little_endian(std::string& to, T number) {
  for (std::size_t i = 0; i < sizeof number; ++i) to += char(number >> (8 * i));
}

void append_varint(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += char(number | 0x80);
  to += char(number);
}

void append_key(std::string& to, Field field, WireType type) {
  append_varint(to, std::uint64_t(field) << 3 | std::uint64_t(type));
}

void append_bytes(std::string& to, Field field, std::string_view bytes) {
  append_key(to, field, kBytes);
  append_varint(to, bytes.size());
  to += bytes;
}

std::string message_at(double wall_time, Index step) {
  std::string message;
  append_key(message, kWallTime, kFixed64);
  append_little_endian(message, std::bit_cast<std::uint64_t>(wall_time));
  append_key(message, kStep, kVarint);
  append_varint(message, std::uint64_t(step));
  return message;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}

/// Stored so that a checksum of data with checksums in it is still a good one.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }
}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(std::string path, double wall_time) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error("cannot write " + path_ + ": " + std::strerror(errno));
  std::string version = message_at(wall_time, 0), start = version, log;
  append_bytes(version, kFileVersion, "brain.Event:2");
  write(version);
  append_key(log, kStatus, kVarint);
  append_varint(log, kStart);
  append_bytes(start, kSessionLog, log);
  write(start);
}

EventFile::~EventFile() {
  if (file_ >= 0) ::close(file_);
}

void EventFile::write(const std::string& message) {
  std::string record;
  append_little_endian(record, std::uint64_t(message.size()));
  append_little_endian(record, masked(crc32c(record)));
  record += message;
  append_little_endian(record, masked(crc32c(message)));
  const auto written = ::write(file_, record.data(), record.size());
  const int problem = written < 0 ? errno : ENOSPC;
  if (written != ssize_t(record.size())) throw Error("cannot write " + path_ + ": " + std::strerror(problem));
}

void EventFile::add(const Event& event) {
  std::string summary;
  for (const EventScalar& scalar : event.scalars) {
    std::string value;
    append_bytes(value, kTag, scalar.tag);
    append_key(value, kSimpleValue, kFixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(float(scalar.value)));
    append_bytes(summary, kValue, value);
  }
  std::string message = message_at(event.wall_time, event.step);
  append_bytes(message, kSummary, summary);
  write(message);
}

}  // namespace isomer
