#include "fleetx/data/packs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetx/base/error.h"
#include "fleetx/data/order.h"

namespace fleetx::data {
namespace {

class Packer {
 public:
  Packer(const Demands& demands, std::vector<int64_t> order, int64_t window)
      : demands_(demands), waiting_(std::move(order)), window_(window), left_(demands.capacity) {}

  std::vector<std::vector<int64_t>> pack() {
    std::vector<std::vector<int64_t>> out;
    while (begin_ < waiting_.size()) {
      std::vector<int64_t>& samples = out.emplace_back();
      left_ = demands_.capacity;
      for (size_t at = next(); at < waiting_.size(); at = next()) {
        samples.push_back(waiting_[at]);
        for (int64_t kind = 0; kind < demands_.kinds(); ++kind)
          left_[static_cast<size_t>(kind)] -= demands_.of(waiting_[at], kind);
        take(at);
      }
    }
    return out;
  }

 private:
  // Where the sample that comes next into the pack is; the end: none fits.
  size_t next() const {
    if (begin_ < waiting_.size() && fits(waiting_[begin_])) return begin_;
    const size_t end = std::min(waiting_.size(), begin_ + static_cast<size_t>(window_));
    size_t best = waiting_.size();
    for (size_t i = begin_; i < end; ++i)
      if (fits(waiting_[i]) && (best == waiting_.size() || tokens(i) > tokens(best))) best = i;
    return best;
  }

  bool fits(int64_t sample) const {
    for (int64_t kind = 0; kind < demands_.kinds(); ++kind)
      if (demands_.of(sample, kind) > left_[static_cast<size_t>(kind)]) return false;
    return true;
  }

  int64_t tokens(size_t at) const {
    int64_t sum = 0;
    for (int64_t kind = 0; kind < demands_.token_kinds; ++kind)
      sum += demands_.of(waiting_[at], kind);
    return sum;
  }

  // Those before it move up, so that they keep their order.
  void take(size_t at) {
    std::move_backward(waiting_.begin() + static_cast<ptrdiff_t>(begin_),
                       waiting_.begin() + static_cast<ptrdiff_t>(at),
                       waiting_.begin() + static_cast<ptrdiff_t>(at) + 1);
    ++begin_;
  }

  const Demands& demands_;
  std::vector<int64_t> waiting_;  // from begin_ on
  size_t begin_ = 0;
  int64_t window_;
  std::vector<int64_t> left_;  // in the pack that is being filled
};

}  // namespace

int64_t rounded_up(double n, int64_t multiple) {
  return static_cast<int64_t>(std::ceil(n / static_cast<double>(multiple))) * multiple;
}

std::vector<std::vector<int64_t>> packs(const Demands& demands, const PackOptions& options,
                                        int64_t epoch) {
  check_arg(options.window >= 1, "a window of ", options.window, " samples; must be positive");
  for (int64_t i = 0; i < demands.samples(); ++i)
    for (int64_t kind = 0; kind < demands.kinds(); ++kind)
      check_arg(demands.of(i, kind) <= demands.capacity[static_cast<size_t>(kind)], "sample ", i,
                " has ", demands.of(i, kind), " tokens; a pack has ",
                demands.capacity[static_cast<size_t>(kind)],
                "; give batches more tokens, or samples less");
  std::vector<int64_t> order(static_cast<size_t>(demands.samples()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options.shuffle) order = shuffled(demands.samples(), options.seed, epoch);
  return Packer(demands, std::move(order), options.window).pack();
}

double padding_share(const Demands& demands, size_t packs) {
  int64_t real = 0, all = 0;
  for (int64_t kind = 0; kind < demands.token_kinds; ++kind) {
    all += demands.capacity[static_cast<size_t>(kind)] * static_cast<int64_t>(packs);
    for (int64_t i = 0; i < demands.samples(); ++i) real += demands.of(i, kind);
  }
  return all == 0 ? 0.0 : 1.0 - static_cast<double>(real) / static_cast<double>(all);
}

}  // namespace fleetx::data
