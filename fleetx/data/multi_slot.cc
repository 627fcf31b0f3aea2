#include "fleetx/data/multi_slot.h"

#include <algorithm>
#include <charconv>

namespace fleetx::data {
namespace {

// Reads the numbers of one line.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text), at_(text.data()) {}

  bool ended() {
    while (at_ != end() && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    return at_ == end();
  }

  template <class T>
  T number(const Slot& slot, const char* what) {
    if (ended()) fail(slot, str("the line ends where ", what, " is expected"));
    T value{};
    const auto [next, error] = std::from_chars(at_, end(), value);
    if (error != std::errc() || (next != end() && *next != ' ' && *next != '\t' && *next != '\r'))
      fail(slot, str("'", std::string(at_, std::find(at_, end(), ' ')), "' is not ", what));
    at_ = next;
    return value;
  }

  [[noreturn]] void fail(const Slot& slot, const std::string& why) const {
    fleetx::fail(Error::Kind::kCorrupt,
                 str("sample '", text_.substr(0, 80), text_.size() > 80 ? "...'" : "'", ": slot '",
                     slot.name, "': ", why));
  }

 private:
  const char* end() const { return text_.data() + text_.size(); }

  std::string_view text_;
  const char* at_;
};

struct Column {
  std::vector<int64_t> ids;
  std::vector<float> numbers;
  std::vector<int64_t> lengths;
};

void read(Line& line, const Slot& slot, Column& column) {
  const auto count = line.number<int64_t>(slot, "a number of values");
  if (count < 1) line.fail(slot, str("has ", count, " values; a slot has at least one"));
  if (slot.width >= 0 && count != slot.width)
    line.fail(slot, str("has ", count, " values, expected ", slot.width));
  for (int64_t i = 0; i < count; ++i) {
    if (slot.dtype == DType::kI64)
      column.ids.push_back(line.number<int64_t>(slot, "a whole number"));
    else
      column.numbers.push_back(line.number<float>(slot, "a number"));
  }
  column.lengths.push_back(count);
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

std::vector<SlotValues> parse_multi_slot(std::string_view lines, const std::vector<Slot>& slots) {
  check_arg(!slots.empty(), "multi slot: no slots are given");
  for (const Slot& slot : slots)
    check_arg(slot.dtype == DType::kI64 || slot.dtype == DType::kF32, "slot '", slot.name, "' is ",
              name_of(slot.dtype), "; slots are i64 or f32");
  std::vector<Column> columns(slots.size());
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    Line line(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.ended()) continue;
    for (size_t i = 0; i < slots.size(); ++i) read(line, slots[i], columns[i]);
    if (!line.ended())
      line.fail(slots.back(), str("is the last of ", slots.size(), ", but the line goes on"));
  }
  std::vector<SlotValues> out;
  for (size_t i = 0; i < slots.size(); ++i)
    out.push_back(
        {slots[i].dtype == DType::kI64 ? tensor_of(columns[i].ids) : tensor_of(columns[i].numbers),
         tensor_of(columns[i].lengths)});
  return out;
}

}  // namespace fleetx::data
