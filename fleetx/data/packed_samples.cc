#include "fleetx/data/packed_samples.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/simd.h"

namespace fleetx::data {
namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

int size_for(uint64_t largest) {
  if (largest == 0) return 0;
  if (largest <= UINT8_MAX) return 1;
  if (largest <= UINT16_MAX) return 2;
  return largest <= UINT32_MAX ? 4 : 8;
}

template <class Narrow>
void put_narrow(std::string& to, std::span<const int64_t> numbers, uint64_t base) {
  const size_t at = to.size();
  to.resize(at + numbers.size() * sizeof(Narrow));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto narrow = static_cast<Narrow>(static_cast<uint64_t>(numbers[i]) - base);
    std::memcpy(to.data() + at + i * sizeof narrow, &narrow, sizeof narrow);
  }
}

void put_numbers(std::string& to, std::span<const int64_t> numbers) {
  const auto [least, most] = std::ranges::minmax(numbers);
  const auto base = static_cast<uint64_t>(least);
  const int size = size_for(static_cast<uint64_t>(most) - base);
  put(to, static_cast<uint8_t>(size));
  put(to, least);
  if (size == 1) put_narrow<uint8_t>(to, numbers, base);
  if (size == 2) put_narrow<uint16_t>(to, numbers, base);
  if (size == 4) put_narrow<uint32_t>(to, numbers, base);
  if (size == 8) put_narrow<uint64_t>(to, numbers, base);
}

void put_floats(std::string& to, const Values& values) {
  const auto* bits = values.data<uint32_t>();
  const bool equal =
      std::all_of(bits, bits + values.size(), [&](uint32_t b) { return b == *bits; });
  put(to, static_cast<uint8_t>(equal ? 0 : 4));
  put(to, equal ? int64_t{*bits} : int64_t{0});
  if (!equal) to.append(values.raw(), values.bytes());
}

template <class Narrow>
void widen(const char* bytes, int64_t n, uint64_t base, int64_t* to) {
  vectorized([=] {
    for (int64_t i = 0; i < n; ++i) {
      Narrow narrow;
      std::memcpy(&narrow, bytes + i * static_cast<int64_t>(sizeof narrow), sizeof narrow);
      to[i] = static_cast<int64_t>(base + narrow);
    }
  });
}

}  // namespace

std::string pack(const Samples& samples) {
  FLEETX_CHECK(samples.count > 0 && samples.count <= kMaxPackedSamples);
  std::string out;
  std::vector<int64_t> lengths(static_cast<size_t>(samples.count));
  for (const Column& c : samples.columns) {
    if (!c.fixed()) {
      for (size_t i = 0; i < lengths.size(); ++i)
        lengths[i] = static_cast<int64_t>(c.end(i) - c.begin(i));
      put_numbers(out, lengths);
    }
    if (c.values.dtype() == DType::kI64)
      put_numbers(out, {c.values.data<int64_t>(), c.values.size()});
    else
      put_floats(out, c.values);
  }
  return out;
}

class PackedSamples::Parser {
 public:
  Parser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  PackedColumn column(const Slot& slot, int64_t samples) {
    slot_ = &slot;
    PackedColumn out{slot.dtype, slot.width, {}, {}};
    int64_t count = samples;
    if (slot.width < 0)
      count = ends(samples, out.ends);
    else
      check(__builtin_mul_overflow(samples, slot.width, &count) == 0, "has too many values");
    out.values = numbers(count, slot.dtype);
    return out;
  }
  void end() const {
    check_file(bytes_.empty(), name_, ": damaged: ", bytes_.size(), " bytes too many in a block");
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... why) const {
    check_file(ok, name_, ": damaged: slot '", slot_->name, "' ", why...);
  }

  Numbers numbers(int64_t count, DType dtype) {
    check(count <= kMaxPackedValues - values_, "has too many values in a block");
    values_ += count;
    check(bytes_.size() >= 9, "is cut off");
    Numbers out;
    out.size = static_cast<uint8_t>(bytes_[0]);
    std::memcpy(&out.base, bytes_.data() + 1, 8);
    bytes_.remove_prefix(9);
    const bool possible =
        dtype == DType::kF32
            ? out.size == 0 || out.size == 4
            : out.size == 0 ||
                  (out.size <= 8 && std::has_single_bit(static_cast<unsigned>(out.size)));
    check(possible, "has numbers of ", out.size, " bytes");
    const uint64_t bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(out.size);
    check(bytes <= bytes_.size(), "is cut off");
    out.bytes = bytes_.data();
    bytes_.remove_prefix(bytes);
    return out;
  }

  // The number of values of all samples.
  int64_t ends(int64_t samples, std::vector<int64_t>& to) {
    const Numbers lengths = numbers(samples, DType::kI64);
    to.resize(static_cast<size_t>(samples));
    unpack(lengths, 0, samples, to.data());
    int64_t sum = 0;
    for (int64_t& length : to) {
      check(length >= 1 && length <= kMaxPackedValues - sum, "has a sample of ", length, " values");
      sum += length;
      length = sum;
    }
    return sum;
  }

  std::string_view bytes_;
  const std::string& name_;
  const Slot* slot_ = nullptr;
  int64_t values_ = 0;
};

PackedSamples::PackedSamples(std::string_view bytes, int64_t samples,
                             const std::vector<Slot>& slots, const std::string& name)
    : count_(samples) {
  check_file(samples > 0 && samples <= kMaxPackedSamples, name, ": damaged: a block of ", samples,
             " samples");
  Parser parser(bytes, name);
  for (const Slot& slot : slots) columns_.push_back(parser.column(slot, samples));
  parser.end();
}

void PackedSamples::unpack(const Numbers& from, int64_t first, int64_t n, int64_t* to) {
  const char* const bytes = from.bytes + first * from.size;
  const auto base = static_cast<uint64_t>(from.base);
  switch (from.size) {
    case 0: return std::fill_n(to, n, from.base), void();
    case 1: return widen<uint8_t>(bytes, n, base, to);
    case 2: return widen<uint16_t>(bytes, n, base, to);
    case 4: return widen<uint32_t>(bytes, n, base, to);
    default: return widen<uint64_t>(bytes, n, base, to);
  }
}

void PackedSamples::unpack(const Numbers& from, int64_t first, int64_t n, float* to) {
  if (from.size == 0)
    std::fill_n(to, n, std::bit_cast<float>(static_cast<uint32_t>(from.base)));
  else
    std::memcpy(to, from.bytes + first * 4, static_cast<size_t>(n) * 4);
}

void PackedSamples::read(int64_t first, int64_t n, std::span<const size_t> which,
                         Samples& to) const {
  for (size_t k = 0; k < which.size(); ++k) {
    const PackedColumn& from = columns_[which[k]];
    Column& column = to.columns[k];
    const auto place = [&](int64_t i) {
      return from.width >= 0 ? i * from.width : i == 0 ? 0 : from.ends[static_cast<size_t>(i) - 1];
    };
    const int64_t begin = place(first), count = place(first + n) - begin;
    const int64_t shift = static_cast<int64_t>(column.values.size()) - begin;
    if (!column.fixed())
      for (int64_t i = first + 1; i <= first + n; ++i) column.ends.push_back(place(i) + shift);
    if (from.dtype == DType::kI64)
      unpack(from.values, begin, count, column.values.room<int64_t>(static_cast<size_t>(count)));
    else
      unpack(from.values, begin, count, column.values.room<float>(static_cast<size_t>(count)));
    column.values.added(static_cast<size_t>(count));
  }
  to.count += n;
}

}  // namespace fleetx::data
