#include "fleetx/ps/dense_table.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/simd.h"

namespace fleetx::ps {

DenseTable::DenseTable(const DenseSpec& spec, const std::vector<Block>& blocks, int server) {
  for (const Block& block : blocks) {
    if (block.server != server) continue;
    Entry entry{.block = block, .rule = spec.params[block.param].rule};
    const auto n = static_cast<size_t>(block.size());
    const std::vector<float> states = entry.rule->states();
    entry.record.resize(n * (1 + states.size()));
    for (size_t s = 0; s < states.size(); ++s)
      std::fill_n(entry.record.begin() + static_cast<int64_t>(n * (s + 1)), n, states[s]);
    entry.scalars = entry.rule->scalars();
    size_ += block.size();
    entries_.push_back(std::move(entry));
  }
}

int64_t DenseTable::bytes() const {
  size_t floats = 0;
  for (const Entry& e : entries_) floats += e.record.size() + e.scalars.size();
  return static_cast<int64_t>(floats * sizeof(float));
}

void DenseTable::set(std::span<const float> values) {
  FLEETX_CHECK(static_cast<int64_t>(values.size()) == size_);
  for (Entry& e : entries_) {
    const auto n = static_cast<size_t>(e.block.size());
    std::copy_n(values.begin(), n, e.record.begin());
    values = values.subspan(n);
  }
  set_ = true;
}

void DenseTable::pull(std::span<float> values) const {
  FLEETX_CHECK(static_cast<int64_t>(values.size()) == size_);
  for (const Entry& e : entries_) {
    const auto n = static_cast<size_t>(e.block.size());
    std::copy_n(e.record.begin(), n, values.begin());
    values = values.subspan(n);
  }
}

void DenseTable::compensate(std::span<float> gradients, std::span<const float> pulled) const {
  FLEETX_CHECK(static_cast<int64_t>(gradients.size()) == size_ &&
               pulled.size() == gradients.size());
  size_t at = 0;
  for (const Entry& e : entries_) {
    vectorized([now = e.record.data(), g = gradients.data() + at, then = pulled.data() + at,
                n = e.block.size()] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) g[i] += g[i] * g[i] * (now[i] - then[i]);
    });
    at += static_cast<size_t>(e.block.size());
  }
}

void DenseTable::push(std::span<const float> gradients, float lr) {
  FLEETX_CHECK(static_cast<int64_t>(gradients.size()) == size_);
  for (Entry& e : entries_) {
    float* const record = e.record.data();
    const float* const gradient = gradients.data();
    e.rule->update({.width = e.block.size(),
                    .lr = lr,
                    .scalars = e.scalars,
                    .records = {&record, 1},
                    .gradients = {&gradient, 1}});
    e.rule->advance(e.scalars);
    gradients = gradients.subspan(static_cast<size_t>(e.block.size()));
  }
}

}  // namespace fleetx::ps
