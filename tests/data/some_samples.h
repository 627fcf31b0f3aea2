// Samples to write and to read again.
#pragma once

#include <string>
#include <vector>

#include "fleetx/base/rng.h"
#include "fleetx/data/samples.h"

namespace fleetx::testing {

inline const std::vector<data::Slot> kSomeSlots{{"ids", DType::kI64, -1},
                                                {"dense", DType::kF32, 3},
                                                {"words", DType::kF32, -1},
                                                {"pair", DType::kI64, 2},
                                                {"label", DType::kI64, 1}};

template <class T>
void put(data::Column& column, std::initializer_list<T> values) {
  T* const to = column.values.room<T>(values.size());
  std::copy(values.begin(), values.end(), to);
  column.values.added(values.size());
  if (!column.fixed()) column.ends.push_back(static_cast<int64_t>(column.values.size()));
}

// Sample `number` is the same in every set.
inline void add_sample(int64_t number, data::Samples& to) {
  const auto n = static_cast<uint64_t>(number);
  const Philox random(11, n);
  const auto id = static_cast<int64_t>(mix(3, n) >> (n % 64));
  if (n % 3 == 0)
    put<int64_t>(to.columns[0], {id});
  else
    put<int64_t>(to.columns[0], {id, -id, number});
  put<float>(to.columns[1], {random.normal(0), random.uniform(1), 0.5f});
  if (n % 2 == 0)
    put<float>(to.columns[2], {1.0f});
  else
    put<float>(to.columns[2], {random.normal(4), 2.0f});
  put<int64_t>(to.columns[3], {number, 7});
  put<int64_t>(to.columns[4], {1});
  ++to.count;
}

inline data::Samples some_samples(int64_t count, int64_t first = 0) {
  data::Samples samples(kSomeSlots);
  for (int64_t i = 0; i < count; ++i) add_sample(first + i, samples);
  return samples;
}

inline std::string text_of(const data::Column& c, size_t sample) {
  std::string out = std::to_string(c.end(sample) - c.begin(sample));
  for (size_t i = c.begin(sample); i < c.end(sample); ++i)
    out += c.values.dtype() == DType::kI64 ? str(" ", c.values.data<int64_t>()[i])
                                           : str(" ", c.values.data<float>()[i]);
  return out;
}

// A line per sample, to compare.
inline std::vector<std::string> lines_of(const data::Samples& samples) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < samples.count; ++i) {
    std::string& line = out.emplace_back();
    for (const data::Column& c : samples.columns)
      line += (line.empty() ? "" : " ") + text_of(c, static_cast<size_t>(i));
  }
  return out;
}

}  // namespace fleetx::testing
