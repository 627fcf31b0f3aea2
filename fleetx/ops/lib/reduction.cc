#include "fleetx/ops/lib/reduction.h"

namespace fleetx::ops {

Reduction::Reduction(const Shape& x, const std::vector<bool>& reduced) {
  // Neighbouring dimensions of one fate are one.
  struct Group {
    int64_t size;
    bool reduced;
  };
  std::vector<Group> groups;
  for (int d = 0; d < x.rank(); ++d) {
    const bool gone = reduced[static_cast<size_t>(d)];
    if (gone) count_ *= x[d];
    if (x[d] == 1) continue;
    if (!groups.empty() && groups.back().reduced == gone)
      groups.back().size *= x[d];
    else
      groups.push_back({x[d], gone});
  }
  // Innermost first: its results are the next one's columns.
  int64_t inner = 1;
  while (!groups.empty()) {
    const Group last = groups.back();
    groups.pop_back();
    if (!last.reduced) {
      inner *= last.size;
      continue;
    }
    int64_t outer = 1;
    for (const Group& g : groups) outer *= g.size;
    add_stage(outer, last.size, inner);
  }
  if (stages_.empty()) stages_.push_back({1, 1, x.numel(), 1});
  for (size_t s = 0; s + 1 < stages_.size(); ++s)
    partials_ = std::max(partials_, stages_[s].outer * stages_[s].pieces * stages_[s].inner);
}

void Reduction::add_stage(int64_t outer, int64_t reduce, int64_t inner) {
  // Enough items for all threads of a large machine, none of them small.
  constexpr int64_t kItems = 64, kSmallest = 1 << 14;
  const int64_t strips = outer * ((inner + kColumns - 1) / kColumns);
  const int64_t total = outer * reduce * inner;
  int64_t pieces = 1;
  if (strips > 0 && strips < kItems)
    pieces = std::clamp<int64_t>(std::min(kItems / strips, total / strips / kSmallest), 1,
                                 std::max<int64_t>(reduce, 1));
  stages_.push_back({outer, reduce, inner, pieces});
  if (pieces > 1) stages_.push_back({outer, pieces, inner, 1});
}

}  // namespace fleetx::ops
