#include "fleetx/comm/slice_exchange.h"

#include <algorithm>

#include "fleetx/base/error.h"

namespace fleetx::comm {
namespace {

// Small enough to be combined while it is in the second-level cache, large enough that the cost of
// a message does not count.
constexpr size_t kChunkBytes = size_t{128} << 10, kMinChunkBytes = size_t{8} << 10;
// Between two hosts chunks are longer: every one wakes whoever sleeps, and interrupts a computation
// on the same core. Those under way fill a fast link while a rank is late. Short vectors are cut
// too, so that one part is combined while the next one travels, but not in parts for which a
// message costs more than its bytes.
constexpr size_t kPairChunkBytes = size_t{512} << 10, kMinPairChunkBytes = size_t{64} << 10;
constexpr size_t kPairBytesUnderWay = size_t{2} << 20, kPairParts = 4;
// Of many hosts, a chunk is smaller: this bounds the memory for contributions.
constexpr size_t kMaxScratchBytes = size_t{64} << 20;

using Source = SlicePlan::Source;

template <class T>
T& in_ring(std::vector<T>& ring, int64_t k) {
  return ring[static_cast<size_t>(k) % ring.size()];
}

}  // namespace

// A sum in a wider type may be longer than the vectors it replaces; then those are sent.
HostNodes::HostNodes(const HostLayout& layout, int host, DType dtype) {
  std::vector<RankRange> found;
  collect_uniform_nodes(
      {0, layout.size()}, [&](int r) { return layout.host_of(r); }, found);
  const size_t item = size_of(dtype), sum_item = size_of(sum_type(dtype));
  for (const RankRange& node : found) {
    const int from = layout.host_of(node.first);
    const bool is_sum = node.count() > 1 && sum_item < static_cast<size_t>(node.count()) * item;
    if (is_sum) {
      nodes.push_back({node, from, true, sum_item});
    } else {
      for (int r = node.first; r < node.last; ++r) nodes.push_back({{r, r + 1}, from, false, item});
    }
  }
  for (const Node& node : nodes) {
    items += node.item;
    if (node.host != host) foreign_items += node.item;
    if (node.host == host && node.is_sum) own_sum_items += node.item;
  }
}

SliceExchange::SliceExchange(Messenger& messenger, int rank, const HostLayout& layout,
                             const HostNodes& nodes, const HostMemory& memory, const Call& call,
                             Labels labels, ExchangeScratch& scratch)
    : messenger_(messenger),
      rank_(rank),
      host_(layout.host_of(rank)),
      layout_(layout),
      nodes_(nodes),
      memory_(memory),
      call_(call),
      labels_(labels),
      scratch_(scratch),
      item_(size_of(call.dtype)) {}

// Of all hosts, so that all ranks decide alike.
size_t SliceExchange::whole_bytes() const {
  return static_cast<size_t>(call_.count) * nodes_.items;
}

// Sends the nodes of this host. `sums` is memory for those that must be computed.
void SliceExchange::send_nodes(int to, int64_t begin, int64_t count, char* sums, Transfers& sends) {
  std::vector<const void*> vectors;
  for (const Node& node : nodes_.nodes) {
    if (node.host != host_) continue;
    const size_t bytes = static_cast<size_t>(count) * node.item;
    const void* data = in(node.ranks.first, begin);
    if (node.is_sum) {
      vectors.clear();
      for (int r = node.ranks.first; r < node.ranks.last; ++r) vectors.push_back(in(r, begin));
      reduce_node(call_.dtype, call_.op, vectors, sums, count);
      data = sums;
      sums += bytes;
    }
    sends.push_back(messenger_.post_send(to, labels_.contribution, data, bytes));
  }
}

// Combines this host's vectors with the nodes of the others, consecutive at `received`.
void SliceExchange::reduce_nodes(int64_t begin, int64_t count, const char* received,
                                 std::span<void* const> destinations) {
  std::vector<Operand>& operands = scratch_.operands;
  operands.clear();
  for (const Node& node : nodes_.nodes) {
    if (node.host == host_) {
      for (int r = node.ranks.first; r < node.ranks.last; ++r)
        operands.push_back({in(r, begin), {r, r + 1}, false});
      continue;
    }
    operands.push_back({received, node.ranks, node.is_sum});
    received += static_cast<size_t>(count) * node.item;
  }
  reduce_operands(call_.dtype, call_.op, operands, destinations, count, layout_.size());
}

void SliceExchange::reduce_whole(Deadline deadline) {
  if (layout_.place_of(rank_) != 0) return;
  const auto count = static_cast<size_t>(call_.count);
  scratch_.bytes.resize(
      std::max(scratch_.bytes.size(), count * (nodes_.foreign_items + nodes_.own_sum_items)));
  Transfers receives, sends;
  sends.reserve(nodes_.nodes.size());
  receives.reserve(nodes_.nodes.size());
  // The sends first: what follows is done while they travel. Every host begins with its neighbour.
  for (int h = 1; h < layout_.hosts(); ++h)
    send_nodes(layout_.leader_of((host_ + h) % layout_.hosts()), 0, call_.count,
               scratch_.bytes.data() + count * nodes_.foreign_items, sends);
  char* to = scratch_.bytes.data();
  for (const Node& node : nodes_.nodes) {
    if (node.host == host_) continue;
    receives.push_back(messenger_.post_receive(layout_.leader_of(node.host), labels_.contribution,
                                               to, count * node.item));
    to += count * node.item;
  }
  wait_all(receives, deadline);
  wait_all(sends, deadline);  // the result may take the place of what is sent
  scratch_.destinations.assign(memory_.out.begin(), memory_.out.end());
  reduce_nodes(0, call_.count, scratch_.bytes.data(), scratch_.destinations);
}

// Where a host sends more than one vector, slices with owners are shorter.
bool SliceExchange::can_reduce_between_two() const {
  if (layout_.hosts() != 2) return false;
  size_t items[2] = {};
  for (const Node& node : nodes_.nodes) items[node.host] += node.item;
  return items[0] == item_ && items[1] == item_;
}

void SliceExchange::reduce_between_two(Deadline deadline) {
  // Ranks of the same place share the work: as many as both hosts have.
  const auto place = static_cast<size_t>(layout_.place_of(rank_));
  const auto& others = layout_.ranks_of(1 - host_);
  const auto lanes = static_cast<int64_t>(std::min(memory_.in.size(), others.size()));
  const auto lane = static_cast<int64_t>(place);
  if (lane >= lanes) return;
  const auto line = static_cast<int64_t>(64 / item_);
  const auto border = [&](int64_t i) {
    return i == lanes ? call_.count : call_.count * i / lanes / line * line;
  };
  const int64_t first = border(lane), count = border(lane + 1) - first;
  const size_t chunk_bytes = std::clamp(static_cast<size_t>(count) * item_ / kPairParts,
                                        kMinPairChunkBytes, kPairChunkBytes);
  chunk_ = std::clamp<int64_t>(count, 1, static_cast<int64_t>(chunk_bytes / item_));
  chunks_ = (count + chunk_ - 1) / chunk_;
  slots_ = std::min(static_cast<int64_t>(kPairBytesUnderWay / chunk_bytes), chunks_ + 1);
  const int64_t lag = slots_ - 1;
  // The chunk that comes and the next one: they stay in the second-level cache, and what comes
  // early waits in the socket.
  constexpr int64_t kComing = 2;
  const size_t coming_bytes = (static_cast<size_t>(chunk_) * item_ + 63) / 64 * 64;
  send_offset_ = coming_bytes * size_t{kComing};
  slot_bytes_ = (static_cast<size_t>(chunk_) * nodes_.own_sum_items + 63) / 64 * 64;
  scratch_.bytes.resize(
      std::max(scratch_.bytes.size(), send_offset_ + slot_bytes_ * static_cast<size_t>(slots_)));
  const auto coming = [&](int64_t k) {
    return scratch_.bytes.data() + static_cast<size_t>(k % kComing) * coming_bytes;
  };
  contributions_.resize(size_t{kComing});
  sends_.resize(static_cast<size_t>(slots_));
  const auto begin_of = [&](int64_t k) { return first + k * chunk_; };
  const auto count_at = [&](int64_t k) { return std::min(chunk_, first + count - begin_of(k)); };
  for (int64_t step = 0, next = 0; step < chunks_ + lag; ++step) {
    if (step < chunks_)
      send_nodes(others[place], begin_of(step), count_at(step), slot(step) + send_offset_,
                 in_ring(sends_, step));
    const int64_t k = step - lag;
    for (; next < std::min(chunks_, std::max<int64_t>(k, 0) + kComing); ++next)
      in_ring(contributions_, next)
          .push_back(messenger_.post_receive(others[place], labels_.contribution, coming(next),
                                             static_cast<size_t>(count_at(next)) * item_));
    if (k >= 0) combine_with_peer(k, coming(k), begin_of(k), count_at(k), deadline);
  }
}

void SliceExchange::combine_with_peer(int64_t k, const char* received, int64_t begin, int64_t count,
                                      Deadline deadline) {
  wait_all(in_ring(contributions_, k), deadline);
  wait_all(in_ring(sends_, k), deadline);  // the result takes the place of what is sent
  std::vector<Operand>& operands = scratch_.operands;
  operands.clear();
  for (const Node& node : nodes_.nodes) {
    const char* data = received;
    if (node.host == host_)
      data = node.is_sum ? slot(k) + send_offset_ : in(node.ranks.first, begin);
    operands.push_back({data, node.ranks, node.is_sum});
  }
  std::vector<void*>& destinations = scratch_.destinations;
  destinations.clear();
  for (char* out : memory_.out) destinations.push_back(out + static_cast<size_t>(begin) * item_);
  reduce_operands(call_.dtype, call_.op, operands, destinations, count, layout_.size());
}

void SliceExchange::prepare(const SlicePlan& plan) {
  plan_ = &plan;
  contributes_ =
      plan.source == Source::kAllRanks || (plan.source == Source::kRoot && is_here(plan.root));
  std::vector<bool> host_wants(static_cast<size_t>(layout_.hosts()));
  for (int r = 0; r < layout_.size(); ++r) {
    if (!plan.wanted[static_cast<size_t>(r)]) continue;
    host_wants[static_cast<size_t>(layout_.host_of(r))] = true;
    if (is_here(r)) writes_foreign_.push_back(r);
  }
  int64_t longest = 0;
  for (const Slice& slice : plan.slices) {
    longest = std::max(longest, slice.count);
    if (slice.owner == rank_)
      own_ = &slice;
    else if (!is_here(slice.owner) && layout_.partner_of(slice.owner, host_) == rank_)
      foreign_.push_back(&slice);
  }
  // Every rank begins with the one behind it, so that not all send to the same one.
  std::sort(foreign_.begin(), foreign_.end(), [&](const Slice* a, const Slice* b) {
    const auto distance = [&](const Slice* s) {
      return (s->owner - rank_ + layout_.size()) % layout_.size();
    };
    return distance(a) < distance(b);
  });
  for (int h = 1; own_ != nullptr && h < layout_.hosts(); ++h) {
    const int host = (host_ + h) % layout_.hosts();
    if (host_wants[static_cast<size_t>(host)]) readers_.push_back(layout_.partner_of(rank_, host));
  }
  writes_own_ = writes_foreign_;
  if (plan.owner_keeps && own_ != nullptr && writes_own_.empty()) writes_own_ = {rank_};
  // The own memory first: it is what is received into and sent from.
  std::stable_partition(writes_own_.begin(), writes_own_.end(), [&](int r) { return r == rank_; });
  std::stable_partition(writes_foreign_.begin(), writes_foreign_.end(),
                        [&](int r) { return r == rank_; });

  // All ranks must choose the same chunk.
  const size_t most = kMaxScratchBytes / (static_cast<size_t>(kSlots) * nodes_.items) * item_;
  const size_t bytes = std::max(kMinChunkBytes, std::min(kChunkBytes, most));
  chunk_ = std::min<int64_t>(static_cast<int64_t>(bytes / item_), std::max<int64_t>(longest, 1));
  chunks_ = (longest + chunk_ - 1) / chunk_;
  const auto elements = static_cast<size_t>(chunk_);
  const bool reduces = plan.source == Source::kAllRanks;
  send_offset_ = reduces && own_ != nullptr ? elements * nodes_.foreign_items : 0;
  result_offset_ =
      send_offset_ + (reduces ? elements * nodes_.own_sum_items * foreign_.size() : size_t{0});
  slot_bytes_ = result_offset_ + (reduces && writes_own_.empty() ? elements * item_ : size_t{0});
  slot_bytes_ = (slot_bytes_ + 63) / 64 * 64;
  scratch_.bytes.resize(std::max(scratch_.bytes.size(), slot_bytes_ * size_t{kSlots}));
  contributions_.resize(size_t{kSlots});
  sends_.resize(size_t{kSlots});
  results_.resize(size_t{kDeliverLag} + 1);
}

void SliceExchange::run(const SlicePlan& plan, Deadline deadline) {
  prepare(plan);
  const int64_t lag = plan.source == Source::kOwner ? 0 : kCombineLag;
  for (int64_t step = 0; step < chunks_ + kDeliverLag; ++step) {
    // What was sent kSlots steps before may still be in memory that is used again now.
    wait_all(in_ring(sends_, step), deadline);
    if (step < chunks_) post_chunk(step, deadline);
    if (step >= lag && step - lag < chunks_) combine_chunk(step - lag, deadline);
    if (step >= kDeliverLag) deliver_chunk(step - kDeliverLag, deadline);
  }
  for (Transfers& sends : sends_) wait_all(sends, deadline);
}

void SliceExchange::receive_nodes(const Slice& slice, int64_t k) {
  Transfers& receives = in_ring(contributions_, k);
  const auto count = static_cast<size_t>(count_of(slice, k));
  char* to = slot(k);
  for (const Node& node : nodes_.nodes) {
    if (node.host == host_) continue;
    receives.push_back(messenger_.post_receive(layout_.partner_of(rank_, node.host),
                                               labels_.contribution, to, count * node.item));
    to += count * node.item;
  }
}

void SliceExchange::post_chunk(int64_t k, Deadline deadline) {
  const int64_t at = k * chunk_;
  if (own_ != nullptr && count_of(*own_, k) > 0) {
    if (plan_->source == Source::kAllRanks) receive_nodes(*own_, k);
    if (plan_->source == Source::kRoot)
      in_ring(contributions_, k)
          .push_back(messenger_.post_receive(
              layout_.partner_of(rank_, layout_.host_of(plan_->root)), labels_.contribution,
              out(writes_own_[0], own_->out_begin + at),
              static_cast<size_t>(count_of(*own_, k)) * item_));
  }
  char* sums = slot(k) + send_offset_;
  for (const Slice* slice : foreign_) {
    const int64_t count = count_of(*slice, k);
    const size_t bytes = static_cast<size_t>(count) * item_;
    if (count == 0) continue;
    if (!writes_foreign_.empty())
      in_ring(results_, k)
          .push_back(messenger_.post_receive(
              slice->owner, labels_.result, out(writes_foreign_[0], slice->out_begin + at), bytes));
    if (!contributes_) continue;
    if (plan_->source == Source::kAllRanks) {
      send_nodes(slice->owner, slice->in_begin + at, count, sums, in_ring(sends_, k));
      sums += static_cast<size_t>(chunk_) * nodes_.own_sum_items;
      continue;
    }
    // The receivers of a broadcast send nothing that would show how far they are.
    if (k >= kCombineLag)
      messenger_.post_receive(slice->owner, labels_.contribution, nullptr, 0)->wait(deadline);
    in_ring(sends_, k).push_back(messenger_.post_send(
        slice->owner, labels_.contribution, in(plan_->root, slice->in_begin + at), bytes));
  }
}

// Copies what lies at `result` to the other ranks of this host that want it.
void SliceExchange::distribute(int64_t begin, size_t bytes, const char* result) {
  for (const int r : writes_foreign_) copy(out(r, begin), result, bytes);
}

void SliceExchange::combine_chunk(int64_t k, Deadline deadline) {
  if (own_ == nullptr || count_of(*own_, k) == 0) return;
  const int64_t at = k * chunk_, count = count_of(*own_, k);
  const size_t bytes = static_cast<size_t>(count) * item_;
  Transfers& sends = in_ring(sends_, k + (plan_->source == Source::kOwner ? 0 : kCombineLag));
  wait_all(in_ring(contributions_, k), deadline);
  const char* result = nullptr;
  if (plan_->source == Source::kOwner) {
    result = in(rank_, own_->in_begin + at);
    distribute(own_->out_begin + at, bytes, result);
  } else if (plan_->source == Source::kRoot) {
    result = out(writes_own_[0], own_->out_begin + at);
    distribute(own_->out_begin + at, bytes, result);
    if (k + kCombineLag < (own_->count + chunk_ - 1) / chunk_)
      sends.push_back(messenger_.post_send(layout_.partner_of(rank_, layout_.host_of(plan_->root)),
                                           labels_.contribution, nullptr, 0));
  } else {
    std::vector<void*> destinations;
    for (const int r : writes_own_) destinations.push_back(out(r, own_->out_begin + at));
    if (destinations.empty()) destinations.push_back(slot(k) + result_offset_);
    reduce_nodes(own_->in_begin + at, count, slot(k), destinations);
    result = static_cast<const char*>(destinations[0]);
  }
  for (const int reader : readers_)
    sends.push_back(messenger_.post_send(reader, labels_.result, result, bytes));
}

void SliceExchange::deliver_chunk(int64_t k, Deadline deadline) {
  Transfers& results = in_ring(results_, k);
  if (results.empty()) return;
  wait_all(results, deadline);
  if (writes_foreign_.size() == 1) return;
  for (const Slice* slice : foreign_) {
    const int64_t begin = slice->out_begin + k * chunk_;
    const auto bytes = static_cast<size_t>(count_of(*slice, k)) * item_;
    if (bytes > 0) distribute(begin, bytes, out(writes_foreign_[0], begin));
  }
}

}  // namespace fleetx::comm
