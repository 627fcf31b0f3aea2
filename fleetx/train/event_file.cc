#include "fleetx/train/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
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
  std::string summary_value;  // tag = 1, simple_value = 2
  add_bytes(summary_value, 1, tag);
  add_key(summary_value, 2, kFixed32);
  add_fixed(summary_value, static_cast<float>(value));
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
