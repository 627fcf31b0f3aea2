// Formats of samples as lines of text. A format turns one line into one sample.
//
//   auto format = multi_slot_format(slots);     // or criteo_format, libsvm_format
//
// Thread-safe: one format is used by all readers.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fleetx/data/samples.h"

namespace fleetx::data {

// Why a line is damaged. The reader of the file adds file, line number and text.
class BadLine : public std::runtime_error {
 public:
  BadLine(const Slot& slot, const std::string& why)
      : std::runtime_error("slot '" + slot.name + "': " + why) {}
  explicit BadLine(const std::string& why) : std::runtime_error(why) {}
};

class LineFormat {
 public:
  explicit LineFormat(std::vector<Slot> slots) : slots_(std::move(slots)) {}
  virtual ~LineFormat() = default;

  const std::vector<Slot>& slots() const { return slots_; }
  // Adds the sample of the line that begins at `at` and gives the place of its newline. A damaged
  // line is a BadLine; what it has added to `to` is then dropped by the caller. The text ends with
  // a newline, and bytes follow it as numbers.h asks.
  virtual const char* read(const char* at, Samples& to) const = 0;

 private:
  std::vector<Slot> slots_;
};

// Adds the samples of all lines but empty ones. A damaged one is kCorrupt: `name` and the number of
// the line, its beginning, slot, why. For texts in memory; SampleFile reads files.
Samples parse_lines(std::string_view text, const LineFormat& format, const std::string& name);

// "part-0:17: sample '1 5 3 1 2': slot 'dense': has 3 values, expected 2". `line` may go on after
// its newline.
std::string describe_bad_line(const std::string& name, int64_t number, std::string_view line,
                              const BadLine& why);

// The beginning of what is at `at`, for messages: up to white space.
std::string word_at(const char* at);

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline const char* skip_blanks(const char* at) {
  while (is_blank(*at)) ++at;
  return at;
}

}  // namespace fleetx::data
