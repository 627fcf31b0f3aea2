#include "fleetx/comm/exchange.h"

#include <bit>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {
namespace {

// Vectors up to this size are sent whole to every peer: one round trip instead of two.
constexpr size_t kSmallBytes = 4096;
// Larger vectors go in chunks, which bounds the receive buffers.
constexpr size_t kChunkBytes = size_t{16} << 20;
// Limit of buffered sends that have not been received; beyond it a sender waits.
constexpr size_t kMaxPendingBytes = size_t{256} << 20;
constexpr uint64_t kCollective = uint64_t{1} << 47;

int64_t share_begin(int64_t count, int rank, int size) { return count * rank / size; }

}  // namespace

void Exchange::wait_all(Transfers& transfers, Deadline deadline) {
  for (auto& t : transfers) t->wait(deadline);
  transfers.clear();
}

uint64_t Exchange::next_label() { return kCollective | (label_++ % kCollective); }

void Exchange::perform(const Call& c, Deadline deadline) {
  switch (c.kind) {
    case CallKind::kAllReduce: return all_reduce(c, deadline);
    case CallKind::kReduceScatter: return reduce_scatter(c, deadline);
    case CallKind::kAllGather: return all_gather(c, deadline);
    case CallKind::kBroadcast: return broadcast(c, deadline);
    case CallKind::kReduce: return reduce_to_root(c, deadline);
    case CallKind::kAllToAll: return all_to_all(c, deadline);
    case CallKind::kBarrier: return barrier(deadline);
    case CallKind::kSend: return send(c, deadline);
    case CallKind::kRecv:
      return post_receive(c.peer, static_cast<uint64_t>(c.tag), c.out,
                          static_cast<size_t>(c.count) * size_of(c.dtype))
          ->wait(deadline);
  }
}

void Exchange::reduce_share(const Call& c, const char* own, const char* theirs, void* out,
                            int64_t count) const {
  const size_t bytes = static_cast<size_t>(count) * size_of(c.dtype);
  std::vector<const void*> sources;
  for (int r = 0; r < size(); ++r) {
    sources.push_back(r == rank() ? own : theirs);
    if (r != rank()) theirs += bytes;
  }
  void* const outs[] = {out};
  reduce_vectors(c.dtype, c.op, sources, outs, count, size());
}

void Exchange::all_reduce(const Call& c, Deadline deadline) {
  const size_t item = size_of(c.dtype);
  if (static_cast<size_t>(c.count) * item <= kSmallBytes) return all_reduce_small(c, deadline);
  const auto chunk = static_cast<int64_t>(kChunkBytes / item);
  for (int64_t begin = 0; begin < c.count; begin += chunk)
    all_reduce_chunk(c, static_cast<char*>(c.out) + static_cast<size_t>(begin) * item,
                     std::min(chunk, c.count - begin), deadline);
}

template <class From>
void Exchange::exchange_with_peers(size_t bytes, const From& from, Deadline deadline) {
  scratch_.resize(bytes * static_cast<size_t>(size()));
  const uint64_t label = next_label();
  Transfers transfers;
  char* to = scratch_.data();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    transfers.push_back(post_receive(r, label, to, bytes));
    transfers.push_back(post_send(r, label, from(r), bytes));
    to += bytes;
  }
  wait_all(transfers, deadline);
}

void Exchange::all_reduce_small(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  exchange_with_peers(
      bytes, [&](int) { return c.in; }, deadline);
  reduce_share(c, static_cast<const char*>(c.in), scratch_.data(), c.out, c.count);
}

void Exchange::all_reduce_chunk(const Call& c, char* data, int64_t count, Deadline deadline) {
  const size_t item = size_of(c.dtype);
  const auto begin = [&](int r) { return share_begin(count, r, size()); };
  const auto share = [&](int r) { return data + static_cast<size_t>(begin(r)) * item; };
  const auto share_bytes = [&](int r) {
    return static_cast<size_t>(begin(r + 1) - begin(r)) * item;
  };
  const size_t own_bytes = share_bytes(rank());
  scratch_.resize(own_bytes * static_cast<size_t>(size()));
  uint64_t label = next_label();
  Transfers receives, sends;
  for (int r = 0, i = 0; r < size(); ++r) {
    if (r == rank()) continue;
    receives.push_back(
        post_receive(r, label, scratch_.data() + static_cast<size_t>(i++) * own_bytes, own_bytes));
    sends.push_back(post_send(r, label, share(r), share_bytes(r)));
  }
  wait_all(receives, deadline);
  reduce_share(c, share(rank()), scratch_.data(), share(rank()), begin(rank() + 1) - begin(rank()));
  wait_all(sends, deadline);
  label = next_label();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    receives.push_back(post_receive(r, label, share(r), share_bytes(r)));
    sends.push_back(post_send(r, label, share(rank()), own_bytes));
  }
  wait_all(receives, deadline);
  wait_all(sends, deadline);
}

void Exchange::reduce_scatter(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const auto part = [&](int r) {
    return static_cast<const char*>(c.in) + static_cast<size_t>(r) * bytes;
  };
  exchange_with_peers(bytes, part, deadline);
  reduce_share(c, part(rank()), scratch_.data(), c.out, c.count);
}

void Exchange::all_gather(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  char* const out = static_cast<char*>(c.out);
  const uint64_t label = next_label();
  Transfers transfers;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    transfers.push_back(post_receive(r, label, out + static_cast<size_t>(r) * bytes, bytes));
    transfers.push_back(post_send(r, label, c.in, bytes));
  }
  copy(out + static_cast<size_t>(rank()) * bytes, c.in, bytes);
  wait_all(transfers, deadline);
}

// A binomial tree: log2(n) rounds.
void Exchange::broadcast(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const int place = (rank() - c.peer + size()) % size();
  const auto rank_at = [&](int p) { return (p + c.peer) % size(); };
  const uint64_t label = next_label();
  const int from = place & (place - 1);  // without its lowest bit
  if (place != 0) post_receive(rank_at(from), label, c.out, bytes)->wait(deadline);
  const int lowest =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size()))) : place & -place;
  Transfers sends;
  for (int bit = lowest / 2; bit > 0; bit /= 2)
    if (place + bit < size()) sends.push_back(post_send(rank_at(place + bit), label, c.out, bytes));
  wait_all(sends, deadline);
}

void Exchange::reduce_to_root(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const uint64_t label = next_label();
  if (rank() != c.peer) return post_send(c.peer, label, c.in, bytes)->wait(deadline);
  scratch_.resize(bytes * static_cast<size_t>(size()));
  Transfers receives;
  char* to = scratch_.data();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    receives.push_back(post_receive(r, label, to, bytes));
    to += bytes;
  }
  wait_all(receives, deadline);
  reduce_share(c, static_cast<const char*>(c.in), scratch_.data(), c.out, c.count);
}

void Exchange::all_to_all(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  const char* const in = static_cast<const char*>(c.in);
  char* const out = static_cast<char*>(c.out);
  const uint64_t label = next_label();
  Transfers transfers;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const size_t at = static_cast<size_t>(r) * bytes;
    transfers.push_back(post_receive(r, label, out + at, bytes));
    transfers.push_back(post_send(r, label, in + at, bytes));
  }
  const size_t own = static_cast<size_t>(rank()) * bytes;
  copy(out + own, in + own, bytes);
  wait_all(transfers, deadline);
}

// Dissemination barrier: in round k every rank notifies the rank 2^k further.
void Exchange::barrier(Deadline deadline) {
  for (int distance = 1; distance < size(); distance *= 2) {
    const uint64_t label = next_label();
    char in = 0, out = 0;
    Transfers transfers;
    transfers.push_back(post_receive((rank() - distance + size()) % size(), label, &in, 1));
    transfers.push_back(post_send((rank() + distance) % size(), label, &out, 1));
    wait_all(transfers, deadline);
  }
}

void Exchange::send(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  while (!pending_sends_.empty() && pending_bytes_ + bytes > kMaxPendingBytes) {
    pending_sends_.front().transfer->wait(deadline);
    pending_bytes_ -= pending_sends_.front().bytes->size();
    pending_sends_.pop_front();
  }
  auto copied = std::make_unique<std::string>(static_cast<const char*>(c.in), bytes);
  auto transfer = post_send(c.peer, static_cast<uint64_t>(c.tag), copied->data(), bytes);
  pending_sends_.push_back({std::move(copied), std::move(transfer)});
  pending_bytes_ += bytes;
}

void Exchange::finish_pending_sends(Deadline deadline) noexcept {
  try {
    for (PendingSend& pending : pending_sends_) pending.transfer->wait(deadline);
  } catch (...) {  // the peer is gone
  }
  pending_sends_.clear();
}

}  // namespace fleetx::comm
