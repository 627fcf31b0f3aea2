#include "fleetx/comm/exchange.h"

#include <bit>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {
namespace {

// Shorter broadcasts go down a tree as a whole.
constexpr size_t kMaxTreeBytes = size_t{32} << 10;
// Of an all-to-all, how many chunks a rank may be ahead of its peer.
constexpr size_t kExchangeChunkBytes = size_t{128} << 10;
constexpr int64_t kPairWindow = 8;
// Limit of buffered messages that have not been received; beyond it a sender waits. A receiver
// confirms what it has taken in parts of kConfirmBytes.
constexpr size_t kMaxUnconfirmed = size_t{256} << 20, kConfirmBytes = size_t{8} << 20;

// Labels of collectives, and of confirmations; those of messages are their tags.
constexpr uint64_t kCollective = uint64_t{1} << 47, kConfirmation = uint64_t{1} << 46;

// A vector in slices: the hosts get the same share of it, and the ranks of a host the same share of
// that. They begin on cache lines, so that two ranks never write the same one.
std::vector<Slice> cut(int64_t count, const HostLayout& layout, size_t item, int without_host) {
  const auto line = static_cast<int64_t>(64 / item);
  const int64_t hosts = layout.hosts() - (without_host >= 0 ? 1 : 0);
  const auto aligned = [&](int64_t at) { return at / line * line; };
  std::vector<Slice> slices;
  for (int h = 0, i = 0; h < layout.hosts(); ++h) {
    if (h == without_host) continue;
    const int64_t begin = aligned(count * i / hosts);
    const int64_t end = ++i == hosts ? count : aligned(count * i / hosts);
    const auto& ranks = layout.ranks_of(h);
    const auto n = static_cast<int64_t>(ranks.size());
    for (int64_t l = 0; l < n; ++l) {
      const int64_t from = begin + aligned((end - begin) * l / n);
      const int64_t to = l + 1 == n ? end : begin + aligned((end - begin) * (l + 1) / n);
      slices.push_back({ranks[static_cast<size_t>(l)], from, from, to - from});
    }
  }
  return slices;
}

// How a collective other than all_to_all is made of slices.
SlicePlan plan_of(const Call& c, const HostLayout& layout) {
  const auto n = static_cast<size_t>(layout.size());
  const size_t item = size_of(c.dtype);
  SlicePlan plan;
  plan.wanted.assign(n, c.kind != CallKind::kReduceScatter && c.kind != CallKind::kReduce);
  plan.root = c.peer;
  const int root_host = layout.host_of(c.peer);
  switch (c.kind) {
    case CallKind::kAllReduce: plan.slices = cut(c.count, layout, item, -1); break;
    case CallKind::kReduce:
      plan.slices = cut(c.count, layout, item, -1);
      plan.wanted[static_cast<size_t>(c.peer)] = true;
      plan.owner_keeps = false;
      break;
    case CallKind::kBroadcast:
      plan.source = SlicePlan::Source::kRoot;
      plan.slices = cut(c.count, layout, item, root_host);
      for (const int r : layout.ranks_of(root_host)) plan.wanted[static_cast<size_t>(r)] = false;
      break;
    case CallKind::kReduceScatter:
      for (int r = 0; r < layout.size(); ++r) plan.slices.push_back({r, r * c.count, 0, c.count});
      break;
    case CallKind::kAllGather:
      plan.source = SlicePlan::Source::kOwner;
      for (int r = 0; r < layout.size(); ++r) plan.slices.push_back({r, 0, r * c.count, c.count});
      break;
    default: break;
  }
  return plan;
}

}  // namespace

Exchange::Exchange(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
                   Milliseconds timeout)
    : Communicator(rank, std::move(members), std::move(store), timeout),
      flat_(HostLayout::one_rank_each(size())),
      credits_(static_cast<size_t>(size())) {}

uint64_t Exchange::next_label() { return kCollective | (label_++ % kConfirmation); }

const HostNodes& Exchange::nodes_of(const HostLayout& layout, DType dtype) {
  if (nodes_layout_ != &layout || nodes_dtype_ != dtype)
    nodes_.emplace(layout, layout.host_of(rank()), dtype);
  nodes_layout_ = &layout;
  nodes_dtype_ = dtype;
  return *nodes_;
}

void Exchange::perform(const Call& c, Deadline deadline) {
  if (c.kind == CallKind::kSend || c.kind == CallKind::kRecv) return message(c, deadline);
  collective(c, flat_, {{static_cast<const char*>(c.in)}, {static_cast<char*>(c.out)}}, deadline);
}

void Exchange::collective(const Call& c, const HostLayout& layout, const HostMemory& memory,
                          Deadline deadline) {
  deadline_ = deadline;
  const auto begin = Clock::now();
  exchange(c, layout, memory, deadline);
  seconds_ += seconds_since(begin);
}

void Exchange::exchange(const Call& c, const HostLayout& layout, const HostMemory& memory,
                        Deadline deadline) {
  if (c.kind == CallKind::kBarrier) return barrier(layout, deadline);
  if (c.count == 0) return;
  if (c.kind == CallKind::kAllToAll) return all_to_all(c, layout, memory, deadline);
  if (c.kind == CallKind::kBroadcast) {
    const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
    if (layout.host_of(rank()) == layout.host_of(c.peer))
      copy(memory.out[static_cast<size_t>(layout.place_of(rank()))],
           memory.in[static_cast<size_t>(layout.place_of(c.peer))], bytes);
    if (bytes <= kMaxTreeBytes) return broadcast_whole(c, layout, memory, deadline);
  }
  const SliceExchange::Labels labels{next_label(), next_label()};
  SliceExchange exchange(*this, rank(), layout, nodes_of(layout, c.dtype), memory, c, labels,
                         scratch_);
  if (c.kind == CallKind::kAllReduce && exchange.whole_bytes() <= SliceExchange::kMaxWholeBytes)
    return exchange.reduce_whole(deadline);
  if (c.kind == CallKind::kAllReduce && exchange.can_reduce_between_two())
    return exchange.reduce_between_two(deadline);
  exchange.run(plan_of(c, layout), deadline);
}

// A binomial tree of hosts: log2(n) rounds.
void Exchange::broadcast_whole(const Call& c, const HostLayout& layout, const HostMemory& memory,
                               Deadline deadline) {
  const uint64_t label = next_label();
  const int hosts = layout.hosts(), host = layout.host_of(rank());
  const int root_host = layout.host_of(c.peer);
  const auto speaker = [&](int h) { return h == root_host ? c.peer : layout.leader_of(h); };
  if (rank() != speaker(host)) return;
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const int place = (host - root_host + hosts) % hosts;
  const auto speaker_at = [&](int p) { return speaker((p + root_host) % hosts); };
  char* const data = memory.out[static_cast<size_t>(layout.place_of(rank()))];
  const int from = place & (place - 1);  // without its lowest bit
  if (place != 0) post_receive(speaker_at(from), label, data, bytes)->wait(deadline);
  const int lowest =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(hosts))) : place & -place;
  Transfers sends;
  for (int bit = lowest / 2; bit > 0; bit /= 2)
    if (place + bit < hosts)
      sends.push_back(post_send(speaker_at(place + bit), label, data, bytes));
  if (place != 0)
    for (char* out : memory.out) copy(out, data, bytes);
  wait_all(sends, deadline);
}

// Ranks of one host copy from each other's memory; the others exchange chunk by chunk.
void Exchange::all_to_all(const Call& c, const HostLayout& layout, const HostMemory& memory,
                          Deadline deadline) {
  const uint64_t label = next_label();
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const auto own_place = static_cast<size_t>(layout.place_of(rank()));
  const char* const in = memory.in[own_place];
  char* const out = memory.out[own_place];
  std::vector<int> peers;
  for (int i = 1; i < size(); ++i) {
    const int r = (rank() + i) % size();
    if (layout.host_of(r) != layout.host_of(rank())) peers.push_back(r);
  }
  const auto chunks = static_cast<int64_t>((bytes + kExchangeChunkBytes - 1) / kExchangeChunkBytes);
  std::vector<Transfers> receives(size_t{kPairWindow}), sends(size_t{kPairWindow});
  for (int64_t k = 0; k < chunks + kPairWindow; ++k) {
    const auto slot = static_cast<size_t>(k % kPairWindow);
    wait_all(receives[slot], deadline);
    wait_all(sends[slot], deadline);
    const size_t at = static_cast<size_t>(k) * kExchangeChunkBytes;
    const size_t part = at < bytes ? std::min(kExchangeChunkBytes, bytes - at) : 0;
    for (const int r : peers) {
      const size_t there = static_cast<size_t>(r) * bytes + at;
      if (part > 0) receives[slot].push_back(post_receive(r, label, out + there, part));
      if (part > 0) sends[slot].push_back(post_send(r, label, in + there, part));
    }
    if (k > 0) continue;
    for (size_t p = 0; p < memory.in.size(); ++p) {  // while the first chunks travel
      const auto r = static_cast<size_t>(layout.ranks_of(layout.host_of(rank()))[p]);
      copy(out + r * bytes, memory.in[p] + static_cast<size_t>(rank()) * bytes, bytes);
    }
  }
}

// Dissemination barrier of the hosts' first ranks: in round k each notifies the one 2^k further.
void Exchange::barrier(const HostLayout& layout, Deadline deadline) {
  const int hosts = layout.hosts(), host = layout.host_of(rank());
  const bool leads = layout.place_of(rank()) == 0;
  for (int distance = 1; distance < hosts; distance *= 2) {
    const uint64_t label = next_label();
    if (!leads) continue;
    const auto leader = [&](int h) { return layout.leader_of((h + hosts) % hosts); };
    Transfers transfers;
    transfers.push_back(post_receive(leader(host - distance), label, nullptr, 0));
    transfers.push_back(post_send(leader(host + distance), label, nullptr, 0));
    wait_all(transfers, deadline);
  }
}

// --- messages -----------------------------------------------------------------------------------

void Exchange::message(const Call& c, Deadline deadline) {
  deadline_ = deadline;
  const auto begin = Clock::now();
  c.kind == CallKind::kSend ? send(c, deadline) : receive(c, deadline);
  seconds_ += seconds_since(begin);
}

void Exchange::send(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  while (!pending_sends_.empty() && pending_sends_.front().transfer->done())
    pending_sends_.pop_front();
  Credit& credit = credits_[static_cast<size_t>(c.peer)];
  while (credit.unconfirmed >= kConfirmBytes && credit.unconfirmed + bytes > kMaxUnconfirmed) {
    uint64_t confirmed = 0;
    post_receive(c.peer, kConfirmation, &confirmed, sizeof confirmed)->wait(deadline);
    credit.unconfirmed -= confirmed;
  }
  credit.unconfirmed += bytes;
  auto copied = std::make_unique<std::string>(static_cast<const char*>(c.in), bytes);
  auto transfer = post_send(c.peer, static_cast<uint64_t>(c.tag), copied->data(), bytes);
  if (transfer->done()) return;
  pending_sends_.push_back({std::move(copied), std::move(transfer)});
  send_in_background();
}

void Exchange::receive(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  post_receive(c.peer, static_cast<uint64_t>(c.tag), c.out, bytes)->wait(deadline);
  Credit& credit = credits_[static_cast<size_t>(c.peer)];
  credit.to_confirm += bytes;
  if (credit.to_confirm < kConfirmBytes) return;
  auto confirmed = std::make_unique<std::string>(sizeof(uint64_t), '\0');
  const uint64_t number = std::exchange(credit.to_confirm, 0);
  std::memcpy(confirmed->data(), &number, sizeof number);
  auto transfer = post_send(c.peer, kConfirmation, confirmed->data(), confirmed->size());
  if (transfer->done()) return;
  pending_sends_.push_back({std::move(confirmed), std::move(transfer)});
  send_in_background();
}

void Exchange::finish_pending_sends(Deadline deadline) noexcept {
  deadline_ = deadline;
  try {
    for (PendingSend& pending : pending_sends_) pending.transfer->wait(deadline);
  } catch (...) {  // the peer is gone
  }
  pending_sends_.clear();
}

}  // namespace fleetx::comm
