#include "fleetx/train/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "fleetx/base/error.h"

namespace fleetx::train {
namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}();

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <class T>
void add_fixed(std::string& to, T value) {
  static_assert(std::endian::native == std::endian::little);
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void add_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}

// A field of protobuf: its number and how it is written.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void add_key(std::string& to, uint64_t field, Wire wire) { add_varint(to, field << 3 | wire); }
void add_bytes(std::string& to, uint64_t field, std::string_view bytes) {
  add_key(to, field, kBytes);
  add_varint(to, bytes.size());
  to += bytes;
}

// Event: wall_time = 1.
std::string begin_event() {
  std::string event;
  add_key(event, 1, kFixed64);
  add_fixed(event, now());
  return event;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8u;
}

std::string file_name() {
  static std::atomic<int> number{0};
  char host[256] = "localhost";
  (void)gethostname(host, sizeof host - 1);
  return str("events.out.tfevents.", static_cast<int64_t>(now()), ".", host, ".", getpid(), ".",
             number++);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t c = 0xffffffffu;
  for (const char byte : bytes) c = kTable[(c ^ static_cast<uint8_t>(byte)) & 0xff] ^ (c >> 8);
  return ~c;
}

EventFile::EventFile(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check_arg(!error, "cannot make the folder ", folder, " for events: ", error.message());
  path_ = std::filesystem::path(folder) / file_name();
  file_ = Fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  check_arg(static_cast<bool>(file_), "cannot write ", path_, ": ", std::strerror(errno));
  std::string event = begin_event();
  add_bytes(event, 3, "brain.Event:2");  // file_version
  write(event);
}

void EventFile::scalar(std::string_view tag, int64_t step, double value) {
  std::string simple;  // simple_value = 2
  add_key(simple, 2, kFixed32);
  add_fixed(simple, static_cast<float>(value));
  add(tag, step, simple);
}

void EventFile::histogram(std::string_view tag, int64_t step, std::span<const float> values) {
  constexpr int kParts = 30;
  double least = HUGE_VAL, most = -HUGE_VAL, sum = 0, squares = 0, count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    least = std::min(least, v);
    most = std::max(most, v);
    sum += v;
    squares += v * v;
    ++count;
  }
  if (count == 0) return;
  const double width = most > least ? (most - least) / kParts : 1.0;
  double parts[kParts] = {};
  for (const double v : values)
    if (std::isfinite(v)) ++parts[std::min(kParts - 1, static_cast<int>((v - least) / width))];
  // HistogramProto: min, max, num, sum, sum_squares = 1 to 5, bucket_limit = 6, bucket = 7.
  std::string histogram, limits, counts;
  uint64_t field = 1;
  for (const double v : {least, most, count, sum, squares}) {
    add_key(histogram, field++, kFixed64);
    add_fixed(histogram, v);
  }
  for (int i = 0; i < kParts; ++i) {
    add_fixed(limits, i + 1 < kParts ? least + width * (i + 1) : std::max(most, least + width));
    add_fixed(counts, parts[i]);
  }
  add_bytes(histogram, 6, limits);
  add_bytes(histogram, 7, counts);
  std::string value;  // histo = 5
  add_bytes(value, 5, histogram);
  add(tag, step, value);
}

void EventFile::add(std::string_view tag, int64_t step, const std::string& value) {
  std::string summary_value;  // tag = 1
  add_bytes(summary_value, 1, tag);
  summary_value += value;
  std::string summary;  // value = 1
  add_bytes(summary, 1, summary_value);
  std::string event = begin_event();
  add_key(event, 2, kVarint);  // step
  add_varint(event, static_cast<uint64_t>(step));
  add_bytes(event, 5, summary);
  write(event);
}

void EventFile::write(const std::string& event) {
  std::string length, record;
  add_fixed(length, static_cast<uint64_t>(event.size()));
  record = length;
  add_fixed(record, masked(length));
  record += event;
  add_fixed(record, masked(event));
  // One call, so that a record is whole or missing.
  const ssize_t done = ::write(file_.get(), record.data(), record.size());
  if (done != static_cast<ssize_t>(record.size()))
    fail(Error::Kind::kInvalidArgument,
         str("cannot write ", path_, ": ", done < 0 ? std::strerror(errno) : "the disk is full"));
}

}  // namespace fleetx::train
