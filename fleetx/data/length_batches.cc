#include "fleetx/data/length_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/data/order.h"

namespace fleetx::data {
namespace {

void check_options(const LengthBatchOptions& o) {
  check_arg(o.batch >= 0 && o.tokens >= 0 && (o.batch > 0) != (o.tokens > 0),
            "a batch has either a number of samples or a number of tokens; got ", o.batch, " and ",
            o.tokens);
  check_arg(o.multiple >= 1, "lengths cannot be padded to a multiple of ", o.multiple);
  check_arg(o.pool >= 1, "a pool of ", o.pool, " samples; must be positive");
}

class Maker {
 public:
  Maker(std::span<const int32_t> lengths, const LengthBatchOptions& o) : lengths_(lengths), o_(o) {}

  // Adds the batches of samples that are sorted by length.
  void add(std::span<const int64_t> sorted) {
    LengthBatch batch;
    for (const int64_t sample : sorted) {
      const int64_t length = padded(lengths_[static_cast<size_t>(sample)]);
      check_arg(o_.tokens == 0 || length <= o_.tokens, "sample ", sample, " has ",
                lengths_[static_cast<size_t>(sample)], " tokens; a batch has at most ", o_.tokens);
      if (is_full(batch, std::max(batch.length, length)))
        batches.push_back(std::exchange(batch, {}));
      batch.length = std::max(batch.length, length);
      batch.samples.push_back(sample);
    }
    if (!batch.samples.empty()) batches.push_back(std::move(batch));
  }

  std::vector<LengthBatch> batches;

 private:
  int64_t padded(int64_t length) const {
    return (length + o_.multiple - 1) / o_.multiple * o_.multiple;
  }
  bool is_full(const LengthBatch& batch, int64_t length) const {
    const auto rows = static_cast<int64_t>(batch.samples.size());
    return o_.batch > 0 ? rows == o_.batch : rows > 0 && (rows + 1) * length > o_.tokens;
  }

  std::span<const int32_t> lengths_;
  const LengthBatchOptions& o_;
};

}  // namespace

std::vector<LengthBatch> length_batches(std::span<const int32_t> lengths,
                                        const LengthBatchOptions& o, int64_t epoch) {
  check_options(o);
  const auto n = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (o.shuffle) order = shuffled(n, o.seed, epoch);
  // A multiple of the batch, so that only the very last batch may be incomplete.
  const int64_t pool = o.batch > 0 ? (o.pool + o.batch - 1) / o.batch * o.batch : o.pool;
  Maker maker(lengths, o);
  for (int64_t begin = 0; begin < n; begin += pool) {
    const std::span<int64_t> part(order.data() + begin, order.data() + std::min(n, begin + pool));
    if (o.shuffle)
      std::ranges::stable_sort(part, {},
                               [&](int64_t i) { return lengths[static_cast<size_t>(i)]; });
    maker.add(part);
  }
  std::vector<LengthBatch>& batches = maker.batches;
  if (o.drop_last && o.batch > 0 && !batches.empty() &&
      static_cast<int64_t>(batches.back().samples.size()) < o.batch)
    batches.pop_back();
  if (!o.shuffle) return std::move(batches);
  std::vector<LengthBatch> mixed;
  for (const int64_t i :
       shuffled(static_cast<int64_t>(batches.size()), mix(o.seed, stable_hash("batches")), epoch))
    mixed.push_back(std::move(batches[static_cast<size_t>(i)]));
  return mixed;
}

double padding_share(std::span<const int32_t> lengths, const std::vector<LengthBatch>& batches) {
  int64_t real = 0, all = 0;
  for (const LengthBatch& batch : batches) {
    all += batch.length * static_cast<int64_t>(batch.samples.size());
    for (const int64_t i : batch.samples) real += lengths[static_cast<size_t>(i)];
  }
  return all == 0 ? 0.0 : 1.0 - static_cast<double>(real) / static_cast<double>(all);
}

}  // namespace fleetx::data
