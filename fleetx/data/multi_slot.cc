#include "fleetx/data/multi_slot.h"

#include <algorithm>

#include "fleetx/data/numbers.h"

namespace fleetx::data {
namespace {

inline const char* read_number(const char* at, int64_t& value) { return read_int(at, value); }
inline const char* read_number(const char* at, float& value) { return read_float(at, value); }

[[noreturn, gnu::cold, gnu::noinline]] void fail_number(const Slot& slot, const char* at,
                                                        const char* what) {
  if (*at == '\n') throw BadLine(slot, str("the line ends where ", what, " is expected"));
  const std::string word = word_at(at);
  const bool whole = word.find_first_not_of("0123456789", word[0] == '-') == std::string::npos;
  throw BadLine(slot, str("'", word, "' is not ", what,
                          whole && word.size() > 18 ? " (it does not fit 64 bits)" : ""));
}

// The number at `at` after blanks, and the place of the blank or newline after it.
template <class T>
inline const char* next(const char* at, T& value, const Slot& slot, const char* what) {
  at += *at == ' ';
  if (is_blank(*at)) [[unlikely]]
    at = skip_blanks(at);
  const char* const end = read_number(at, value);
  if (end == nullptr || (!is_blank(*end) && *end != '\n')) [[unlikely]]
    fail_number(slot, at, what);
  return end;
}

template <class T>
const char* read_values(const char* at, const Slot& slot, int64_t count, Column& to) {
  constexpr int64_t kAtOnce = 1024;  // no room for a number of values that the line only claims
  const char* const what = std::is_same_v<T, int64_t> ? "a whole number" : "a number";
  for (int64_t done = 0; done < count; done += kAtOnce) {
    const int64_t n = std::min(kAtOnce, count - done);
    T* const out = to.values.room<T>(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) at = next(at, out[i], slot, what);
    to.values.added(static_cast<size_t>(n));
  }
  return at;
}

class MultiSlot final : public LineFormat {
 public:
  using LineFormat::LineFormat;

  const char* read(const char* at, Samples& to) const override {
    for (size_t i = 0; i < slots().size(); ++i) {
      const Slot& slot = slots()[i];
      Column& column = to.columns[i];
      int64_t count = 0;
      if (at[0] == ' ' && at[1] == '1' && at[2] == ' ') {  // most slots of most data
        count = 1;
        at += 2;
      } else {
        at = next(at, count, slot, "a number of values");
      }
      if (count < 1 || count != slot.width) check_count(slot, count);
      at = slot.dtype == DType::kI64 ? read_values<int64_t>(at, slot, count, column)
                                     : read_values<float>(at, slot, count, column);
      if (slot.width < 0) column.ends.push_back(static_cast<int64_t>(column.values.size()));
    }
    at = skip_blanks(at);
    if (*at != '\n')
      throw BadLine(slots().back(),
                    str("is the last of ", slots().size(), ", but the line goes on"));
    return at;
  }

 private:
  static void check_count(const Slot& slot, int64_t count) {
    if (count < 1) throw BadLine(slot, str("has ", count, " values; a slot has at least one"));
    if (slot.width >= 0) throw BadLine(slot, str("has ", count, " values, expected ", slot.width));
  }
};

}  // namespace

std::unique_ptr<const LineFormat> multi_slot_format(std::vector<Slot> slots) {
  check_slots(slots);
  return std::make_unique<MultiSlot>(std::move(slots));
}

}  // namespace fleetx::data
