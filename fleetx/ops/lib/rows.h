// Ids that come with the data (gather, scatter, embedding, one_hot, ...): read as i64 or i32, and
// checked before anything is touched. And the copy of rows that they name.
#pragma once

#include <cstring>
#include <string>

#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {

class Ids {
 public:
  Ids(const void* data, bool wide) : data_(data), wide_(wide) {}
  int64_t operator()(int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  bool wide_;
};

// An input of ids in a kernel. `limit`: ids must be in [0, limit); `what` says where from, for the
// message: "rows of w".
class IdInput {
 public:
  IdInput(kernel::Prepare& p, std::string_view slot, int64_t limit, std::string what);

  int64_t count() const { return n_; }
  Ids unchecked(const kernel::Run& r) const { return {r.raw(slot_), wide_}; }
  // Throws kInvalidArgument for the first id out of range, naming the op, the id, its place and the
  // limit.
  Ids checked(const kernel::Run& r) const;

 private:
  kernel::Slot slot_;
  Shape shape_;
  int64_t n_, limit_;
  bool wide_;
  std::string where_, what_;
};

// "[3,1]": the coordinates of element i.
std::string place_in(const Shape& shape, int64_t i);

// An input of an op that holds ids: i64 or i32.
inline void check_ids(const ir::Infer& c, std::string_view slot) {
  const DType dtype = c.in(slot).dtype;
  c.check(dtype == i64 || dtype == i32, c.show(slot), "; must be i64 or i32");
}

// out[i] = table[row(i)] for i in [0, n), rows of `bytes` bytes; a negative row gives zeros.
template <class Row>
void copy_rows(const Row& row, int64_t n, int64_t bytes, const char* table, char* out) {
  constexpr int64_t kAhead = 8;  // rows whose memory is on its way while one is copied
  const auto size = static_cast<size_t>(bytes);
  const auto loop = [&](int64_t begin, int64_t end, auto copy) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end)
        __builtin_prefetch(table + std::max<int64_t>(0, row(i + kAhead)) * bytes);
      const int64_t from = row(i);
      if (from < 0) [[unlikely]]
        std::memset(out + i * bytes, 0, size);
      else
        copy(out + i * bytes, table + from * bytes);
    }
  };
  parallel_for(n, (1 << 15) / (bytes + 1) + 1, [&](int64_t begin, int64_t end) {
    switch (bytes) {
      case 4: return loop(begin, end, [](char* to, const char* from) { std::memcpy(to, from, 4); });
      case 8: return loop(begin, end, [](char* to, const char* from) { std::memcpy(to, from, 8); });
      default:
        return loop(begin, end,
                    [size](char* to, const char* from) { std::memcpy(to, from, size); });
    }
  });
}

}  // namespace fleetx::ops
