// The order of every reduction: a balanced binary tree over the ranks. Pairs are combined first,
// then fours, and so on; a count that is no power of two is split at the largest power of two below
// it, so 6 ranks are ((0 1) (2 3)) (4 5). The shape depends on the number of ranks alone. Why a
// tree: the ranks of a host form nodes of it, so a host can send sums instead of its ranks' vectors
// without a change in the result.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace fleetx::comm {

// The ranks [first, last).
struct RankRange {
  int first = 0, last = 0;
  int count() const { return last - first; }
  bool operator==(const RankRange&) const = default;
};

// Where a node with more than one rank is split. Depends on the number of its ranks only.
inline int middle_of(RankRange node) {
  return node.first + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.count() - 1)));
}

// The largest nodes of the tree whose ranks are all of one kind, from left to right: what each host
// can sum up by itself. Returns the kind of the node, or -1 for a mixture.
template <class KindOf>
int collect_uniform_nodes(RankRange node, const KindOf& kind_of, std::vector<RankRange>& found) {
  if (node.count() == 1) {
    found.push_back(node);
    return kind_of(node.first);
  }
  const size_t before = found.size();
  const int left = collect_uniform_nodes({node.first, middle_of(node)}, kind_of, found);
  const int right = collect_uniform_nodes({middle_of(node), node.last}, kind_of, found);
  if (left != right || left < 0) return -1;
  found.resize(before);
  found.push_back(node);
  return left;
}

}  // namespace fleetx::comm
