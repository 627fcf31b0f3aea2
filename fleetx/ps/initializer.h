// First values of a sparse row: a pure function of (seed, table, id), so that they do not depend on
// servers, on the order of requests or on restarts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fleetx::ps {

struct Initializer {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal, kTruncatedNormal };
  Kind kind = Kind::kConstant;
  // kConstant: a. kUniform: in [a, b). kNormal: mean a, standard deviation b. kTruncatedNormal: the
  // same, drawn again while it is more than two deviations from the mean.
  float a = 0, b = 0;
  uint64_t seed = 0;

  void fill(uint64_t table_hash, uint64_t id, std::span<float> row) const;
  std::string text() const;
};

}  // namespace fleetx::ps
