#include "fleetx/data/samples.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "fleetx/base/job_env.h"

namespace fleetx::data {
namespace {

Slot parse_slot(std::string_view text) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  check_arg(parts.size() == 2 || parts.size() == 3, "slot '", text,
            "': expected name:dtype:width or name:dtype");
  const auto dtype = dtype_from_name(parts[1]);
  check_arg(dtype.has_value(), "slot '", parts[0], "': no type '", parts[1],
            "'; known: int64, float32");
  Slot slot{parts[0], *dtype, -1};
  if (parts.size() == 2) return slot;
  const char* const end = parts[2].data() + parts[2].size();
  const auto [at, error] = std::from_chars(parts[2].data(), end, slot.width);
  check_arg(error == std::errc() && at == end, "slot '", slot.name, "': '", parts[2],
            "' is not a width");
  return slot;
}

}  // namespace

std::vector<Slot> parse_slots(std::string_view text) {
  std::vector<Slot> slots;
  for (const std::string& part : split_list(text)) slots.push_back(parse_slot(part));
  check_slots(slots);
  return slots;
}

void check_slots(const std::vector<Slot>& slots) {
  check_arg(!slots.empty(), "samples: no slots are given");
  std::set<std::string> names;
  for (const Slot& slot : slots) {
    check_arg(slot.dtype == DType::kI64 || slot.dtype == DType::kF32, "slot '", slot.name, "' is ",
              name_of(slot.dtype), "; slots are i64 or f32");
    check_arg(slot.width == -1 || (slot.width > 0 && slot.width <= 1 << 24), "slot '", slot.name,
              "' has ", slot.width, " values; a slot has at least one");
    check_arg(names.insert(slot.name).second, "slot '", slot.name, "' is given twice");
  }
}

void Values::reserve(size_t n) {
  if (n <= capacity_) return;
  const size_t capacity = std::max({n, capacity_ + capacity_ / 2, size_t{16}});
  auto memory = std::make_unique_for_overwrite<char[]>(capacity * element_);
  if (size_ > 0) std::memcpy(memory.get(), memory_.get(), bytes());
  memory_ = std::move(memory);
  capacity_ = capacity;
}

void Values::append(const Values& from, size_t first, size_t count) {
  if (count == 0) return;
  reserve(size_ + count);
  std::memcpy(memory_.get() + bytes(), from.raw() + first * element_, count * element_);
  size_ += count;
}

Samples::Samples(const std::vector<Slot>& slots) {
  columns.reserve(slots.size());
  for (const Slot& slot : slots) columns.emplace_back(slot);
}

void Samples::drop_incomplete() {
  const auto n = static_cast<size_t>(count);
  for (Column& c : columns) {
    if (!c.fixed()) c.ends.resize(n);
    c.values.truncate(c.begin(n));
  }
}

void Samples::reserve(int64_t n) {
  for (Column& c : columns) {
    c.values.reserve(static_cast<size_t>(n * std::max<int64_t>(c.width, 1)));
    if (!c.fixed()) c.ends.reserve(static_cast<size_t>(n));
  }
}

void Samples::append(const Samples& from, int64_t first, int64_t n) {
  if (n == 0) return;
  const auto begin = static_cast<size_t>(first), last = static_cast<size_t>(first + n - 1);
  for (size_t k = 0; k < columns.size(); ++k) {
    Column& to = columns[k];
    const Column& c = from.columns[k];
    const auto shift =
        static_cast<int64_t>(to.values.size()) - static_cast<int64_t>(c.begin(begin));
    to.values.append(c.values, c.begin(begin), c.end(last) - c.begin(begin));
    if (!to.fixed())
      for (size_t i = begin; i <= last; ++i) to.ends.push_back(c.ends[i] + shift);
  }
  count += n;
}

std::vector<SlotValues> to_tensors(Samples samples, const std::vector<Slot>& slots) {
  // All tensors of a batch keep it alive together.
  const auto owner = std::make_shared<Samples>(std::move(samples));
  std::vector<SlotValues> out;
  for (size_t k = 0; k < slots.size(); ++k) {
    Column& c = owner->columns[k];
    SlotValues& to = out.emplace_back();
    to.values = Tensor::view(slots[k].dtype, {static_cast<int64_t>(c.values.size())},
                             const_cast<char*>(c.values.raw()), owner);
    if (c.fixed()) continue;
    to.lengths = Tensor(DType::kI64, {owner->count});
    const std::span<int64_t> lengths = to.lengths.data<int64_t>();
    for (size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = static_cast<int64_t>(c.end(i) - c.begin(i));
  }
  return out;
}

}  // namespace fleetx::data
