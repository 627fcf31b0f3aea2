#include "fleetx/data/criteo.h"

#include <zlib.h>

#include <cstring>

#include "fleetx/data/numbers.h"

namespace fleetx::data {
namespace {

constexpr size_t kNumbers = 13, kWords = 26;
// Of the numbers in the whole data set: x becomes (x - least) / range.
constexpr float kLeast[kNumbers] = {0, -3};
constexpr float kRange[kNumbers] = {20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50};

class Criteo final : public LineFormat {
 public:
  Criteo(std::vector<Slot> slots, int64_t ids)
      : LineFormat(std::move(slots)), ids_(static_cast<uint64_t>(ids)) {
    for (size_t i = 0; i < kWords; ++i) {
      const std::string place = std::to_string(i + 1);
      place_sum_[i] =
          crc32(0, reinterpret_cast<const Bytef*>(place.data()), static_cast<uInt>(place.size()));
    }
  }

  const char* read(const char* at, Samples& to) const override {
    int64_t label = 0;
    const char* const begin = at;
    at = read_int(at, label);
    if (at == nullptr || *at != '\t')
      throw BadLine(slots().back(), str("'", word_at(begin), "' is not a label"));
    at = read_numbers(at, to.columns[0]);
    for (size_t i = 0; i < kWords; ++i) at = read_word(at, i, to.columns[1 + i].values);
    if (*at == '\r') ++at;
    if (*at != '\n') throw BadLine(str("more than ", 1 + kNumbers + kWords, " fields"));
    put(to.columns[1 + kWords].values, label);
    return at;
  }

 private:
  static void put(Values& to, int64_t value) {
    *to.room<int64_t>(1) = value;
    to.added(1);
  }

  void check_tab(const char* at, size_t field) const {
    if (*at != '\t')
      throw BadLine(str(*at == '\n' ? "the line ends" : "no tab", " before field ", field, " of ",
                        1 + kNumbers + kWords));
  }

  const char* read_numbers(const char* at, Column& to) const {
    float* const out = to.values.room<float>(kNumbers);
    for (size_t i = 0; i < kNumbers; ++i) {
      check_tab(at, 2 + i);
      ++at;
      float value = 0;
      if (*at != '\t') {
        const char* const end = read_float(at, value);
        if (end == nullptr || (*end != '\t' && *end != '\n'))
          throw BadLine(slots()[0], str("'", word_at(at), "' is not a number"));
        at = end;
      }
      out[i] = (value - kLeast[i]) / kRange[i];
    }
    to.values.added(kNumbers);
    return at;
  }

  const char* read_word(const char* at, size_t i, Values& to) const {
    check_tab(at, 2 + kNumbers + i);
    const char* const word = ++at;
    while (*at != '\t' && *at != '\n' && *at != '\r') ++at;
    const auto sum =
        crc32(place_sum_[i], reinterpret_cast<const Bytef*>(word), static_cast<uInt>(at - word));
    put(to, static_cast<int64_t>(sum % ids_));
    return at;
  }

  uint64_t ids_;
  uLong place_sum_[kWords];
};

}  // namespace

std::unique_ptr<const LineFormat> criteo_format(std::vector<Slot> slots, int64_t ids) {
  check_slots(slots);
  check_arg(ids > 0, "criteo: ids are taken modulo ", ids, "; give a number above 0");
  const bool shape = slots.size() == 2 + kWords && slots[0].dtype == DType::kF32 &&
                     slots[0].width == int64_t{kNumbers};
  check_arg(shape, "criteo: the slots are numbers (float32, 13 values), 26 of ids and the label (",
            "int64, 1 value each); got ", slots.size(), ", the first '", slots[0].name, "' ",
            name_of(slots[0].dtype), " of ", slots[0].width, " values");
  for (size_t i = 1; i < slots.size(); ++i)
    check_arg(slots[i].dtype == DType::kI64 && slots[i].width == 1, "criteo: slot '", slots[i].name,
              "' is ", name_of(slots[i].dtype), " of ", slots[i].width,
              " values, expected int64 of 1");
  return std::make_unique<Criteo>(std::move(slots), ids);
}

}  // namespace fleetx::data
