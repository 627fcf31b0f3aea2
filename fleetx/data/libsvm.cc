#include "fleetx/data/libsvm.h"

#include "fleetx/data/numbers.h"

namespace fleetx::data {
namespace {

bool ends_number(char c) { return is_blank(c) || c == '\n' || c == '#'; }

template <class T>
void put(Values& to, T value) {
  *to.room<T>(1) = value;
  to.added(1);
}

class Libsvm final : public LineFormat {
 public:
  using LineFormat::LineFormat;

  const char* read(const char* at, Samples& to) const override {
    at = read_label(skip_blanks(at), to.columns[0].values);
    Column &indices = to.columns[1], &values = to.columns[2];
    const size_t before = indices.values.size();
    for (at = skip_blanks(at); *at != '\n' && *at != '#'; at = skip_blanks(at))
      at = read_feature(at, indices.values, values.values);
    if (indices.values.size() == before) throw BadLine(slots()[1], "the line has no features");
    for (Column* c : {&indices, &values}) c->ends.push_back(static_cast<int64_t>(c->values.size()));
    while (*at != '\n') ++at;
    return at;
  }

 private:
  const char* read_label(const char* at, Values& to) const {
    const char* const word = at;
    at += *at == '+';  // "+1" is usual here
    int64_t whole = 0;
    float number = 0;
    const bool ids = to.dtype() == DType::kI64;
    at = ids ? read_int(at, whole) : read_float(at, number);
    if (at == nullptr || !ends_number(*at))
      throw BadLine(slots()[0], str("'", word_at(word), "' is not a label"));
    if (ids)
      put(to, whole);
    else
      put(to, number);
    return at;
  }

  const char* read_feature(const char* at, Values& indices, Values& values) const {
    int64_t index = 0;
    float value = 0;
    const char* end = read_int(at, index);
    if (end == nullptr || *end != ':')
      throw BadLine(slots()[1], str("'", word_at(at), "' is not index:value"));
    end = read_float(end + 1, value);
    if (end == nullptr || !ends_number(*end))
      throw BadLine(slots()[2], str("'", word_at(at), "' is not index:value"));
    put(indices, index);
    put(values, value);
    return end;
  }
};

}  // namespace

std::unique_ptr<const LineFormat> libsvm_format(std::vector<Slot> slots) {
  check_slots(slots);
  const bool shape = slots.size() == 3 && slots[0].width == 1 && slots[1].dtype == DType::kI64 &&
                     slots[1].width == -1 && slots[2].dtype == DType::kF32 && slots[2].width == -1;
  check_arg(shape,
            "libsvm: the slots are the label (1 value), the indices (int64, any number) and ",
            "the values (float32, any number)");
  return std::make_unique<Libsvm>(std::move(slots));
}

}  // namespace fleetx::data
