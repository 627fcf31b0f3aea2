#include "fleetx/ps/initializer.h"

#include <cmath>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::ps {

void Initializer::fill(uint64_t table_hash, uint64_t id, std::span<float> row) const {
  const Philox random(seed, mix(table_hash, id));
  const size_t n = row.size();
  switch (kind) {
    case Kind::kConstant:
      for (float& x : row) x = a;
      return;
    case Kind::kUniform:
      for (size_t i = 0; i < n; i += 4) {
        const auto words = random.block(i / 4);
        for (size_t k = i; k < std::min(n, i + 4); ++k)
          row[k] = a + (b - a) * Philox::to_unit(words[k - i]);
      }
      return;
    case Kind::kNormal:
      for (size_t i = 0; i < n; ++i) row[i] = a + b * random.normal(i);
      return;
    case Kind::kTruncatedNormal:
      for (size_t i = 0; i < n; ++i) {
        // Each element has a sequence of draws of its own; 2 of 44 are beyond two deviations.
        float x = random.normal(i);
        for (uint64_t draw = 1; std::abs(x) > 2; ++draw) x = random.normal(i + draw * n);
        row[i] = a + b * x;
      }
      return;
  }
}

std::string Initializer::text() const {
  constexpr std::string_view kNames[] = {"constant", "uniform", "normal", "truncated_normal"};
  return str(kNames[static_cast<size_t>(kind)], "(", a, ", ", b, ") seed ", seed);
}

}  // namespace fleetx::ps
