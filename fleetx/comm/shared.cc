#include "fleetx/comm/shared.h"

#include <immintrin.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/interrupt.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {
namespace {

// How long a rank spins before it sleeps: a wake-up costs 40 us. It yields the core between rounds,
// because the rank it waits for may need it. The queue thread spins less: it shares its core with
// the computation. The time is bounded, too: on a busy machine each yield may cost a time slice.
struct SpinLimits {
  int rounds, spins;
};
constexpr SpinLimits kSpin{60, 60}, kQueueThreadSpin{10, 20}, kOversubscribedSpin{2000, 1};
constexpr Milliseconds kMaxSpinTime{2};
// How often a sleeping rank checks that its peers are alive.
constexpr Milliseconds kLivenessPeriod{20};

// Slices of a vector begin on cache lines, so that two ranks never write the same one.
int64_t slice_begin(int64_t count, int rank, int size, size_t item) {
  const int64_t line = 64 / static_cast<int64_t>(item);
  if (rank == size) return count;
  return std::min(count, count / size * rank / line * line);
}

struct MessageHeader {
  int64_t tag;
  uint64_t bytes;
};

void copy_into(RingBuffer& ring, uint64_t at, const char* from, size_t bytes) {
  const size_t begin = at % kRingBytes, first = std::min(bytes, kRingBytes - begin);
  copy(ring.bytes + begin, from, first);
  copy(ring.bytes, from + first, bytes - first);
}

void copy_out(const RingBuffer& ring, uint64_t at, char* to, size_t bytes) {
  const size_t begin = at % kRingBytes, first = std::min(bytes, kRingBytes - begin);
  copy(to, ring.bytes + begin, first);
  copy(to + first, ring.bytes, bytes - first);
}

}  // namespace

Shared::Shared(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
               Milliseconds timeout, SharedMemory memory)
    : Communicator(rank, std::move(members), std::move(store), timeout),
      memory_(memory),
      oversubscribed_(size() > sysconf(_SC_NPROCESSORS_ONLN)),
      received_(static_cast<size_t>(size())) {}

Shared::~Shared() = default;

void Shared::leave() {
  stop_queue();
  own().presence = Presence::kLeft;
  wake_all();
}

// --- waiting ------------------------------------------------------------------------------------

void Shared::arrive() {
  own().arrivals[calls_ & 1].phase.store(++phase_, std::memory_order_release);
  wake_all();
}

void Shared::wake_all() {
  fence_before_wake();
  for (int r = 0; r < size(); ++r) wake(memory_.slot(r));
}

void Shared::wait_for_all(Deadline deadline) {
  const auto behind = [&](int r) {
    const uint32_t phase =
        memory_.slot(r).arrivals[calls_ & 1].phase.load(std::memory_order_acquire);
    return static_cast<int32_t>(phase - phase_) < 0;
  };
  int next = 0;
  const auto ready = [&] {
    while (next < size() && !behind(next)) ++next;
    return next == size();
  };
  wait(ready, behind, deadline);
}

template <class Ready, class Pending>
void Shared::wait(const Ready& ready, const Pending& pending, Deadline deadline) {
  const SpinLimits limits = oversubscribed_          ? kOversubscribedSpin
                            : CallQueue::on_thread() ? kQueueThreadSpin
                                                     : kSpin;
  Deadline spin_end{};
  for (int round = 0; round < limits.rounds; ++round) {
    for (int spin = 0; spin < limits.spins; ++spin) {
      if (ready()) return;
      _mm_pause();
    }
    // The clock is read in every eighth round only: it costs as much as a short call.
    if (round % 8 == 7) {
      const auto now = Clock::now();
      if (round == 7) spin_end = now + kMaxSpinTime;
      if (now >= spin_end) break;
    }
    sched_yield();
  }
  Slot& me = own();
  for (;;) {
    const uint32_t value = me.futex.load();
    me.sleeping.store(1);
    fence_before_sleep();
    const bool there = ready();
    if (!there)
      wait_on_futex(me.futex, value,
                    std::min(kLivenessPeriod, Milliseconds(1 + left_ms(deadline))));
    me.sleeping.store(0);
    if (there || ready()) return;
    check_peers(ready, pending, deadline);
  }
}

template <class Ready, class Pending>
void Shared::check_peers(const Ready& ready, const Pending& pending, Deadline deadline) {
  try {
    check_interrupt();
  } catch (...) {
    record(memory_.failure(), interrupted());
    wake_all();
    throw;
  }
  if (const auto failure = recorded(memory_.failure())) throw PeerFailure{*failure};
  throw_if_store_failed();
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || !pending(r)) continue;
    const bool left = memory_.slot(r).presence == Presence::kLeft;
    // Its last writes came before its end: look again.
    if ((!left && !is_dead(r)) || ready() || !pending(r)) continue;
    const Member& m = members()[static_cast<size_t>(r)];
    const Failure failure{m.rank, m.host, m.pid, left ? "has left the group" : "has died", false};
    record(memory_.failure(), failure);
    throw PeerFailure{failure};
  }
  if (Clock::now() < deadline) return;
  for (int r = 0; r < size(); ++r)
    if (r != rank() && pending(r))
      fail_hangs(r, is_stopped(r) ? "is stopped and did not answer" : "did not answer in time");
}

// --- collectives --------------------------------------------------------------------------------

void Shared::perform(const Call& call, Deadline deadline) {
  if (const auto failure = recorded(memory_.failure())) throw PeerFailure{*failure};
  if (call.kind == CallKind::kSend) return send(call, deadline);
  if (call.kind == CallKind::kRecv) return receive(call, deadline);
  if (call.kind == CallKind::kAllReduce &&
      static_cast<size_t>(call.count) <= kInlineBytes / size_of(call.dtype))
    return small_all_reduce(call, deadline);
  const Collective collective = begin(call, deadline);
  if (call.count == 0) return;
  switch (call.kind) {
    case CallKind::kAllReduce:
    case CallKind::kReduce: return all_reduce(collective);
    case CallKind::kReduceScatter: return reduce_scatter(collective);
    case CallKind::kAllGather: return all_gather(collective);
    case CallKind::kBroadcast: return broadcast(collective);
    case CallKind::kAllToAll: return all_to_all(collective);
    default: return;
  }
}

const CallDescriptor& Shared::descriptor(int peer) const {
  return memory_.slot(peer).arrivals[calls_ & 1].call;
}

// Publishes this rank's call and checks that all ranks make the same one. A difference is an error
// of the program.
void Shared::match_call(const Call& c, uint64_t in, uint64_t out, Deadline deadline) {
  ++calls_;
  const CallDescriptor mine{c.kind, c.dtype, c.op, c.peer, c.count, in, out};
  own().arrivals[calls_ & 1].call = mine;
  sync(deadline);
  for (int r = 0; r < size(); ++r) {
    const CallDescriptor& p = descriptor(r);
    if (p.kind == c.kind && p.dtype == c.dtype && p.op == c.op && p.peer == c.peer &&
        p.count == c.count)
      continue;
    const Call other{p.kind, nullptr, nullptr, p.count, p.dtype, p.op, p.peer};
    fail(Error::Kind::kInvalidArgument,
         str("ranks of a group must make the same calls: rank ", rank(), " makes ", to_string(c),
             " where rank ", r, " makes ", to_string(other)));
  }
}

// One phase: every rank reads all vectors and computes the whole result.
void Shared::small_all_reduce(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  if (bytes > 0) std::memcpy(own().small[(calls_ + 1) & 1], c.in, bytes);  // else `in` may be null
  match_call(c, kNotShared, kNotShared, deadline);
  const void* sources[kMaxRanks];
  for (int r = 0; r < size(); ++r) sources[r] = memory_.slot(r).small[calls_ & 1];
  void* const out[] = {c.out};
  reduce_vectors(c.dtype, c.op, {sources, static_cast<size_t>(size())}, out, c.count, size());
}

Shared::Collective Shared::begin(const Call& c, Deadline deadline) {
  const size_t item = size_of(c.dtype);
  const bool many = c.kind == CallKind::kReduceScatter || c.kind == CallKind::kAllToAll;
  const size_t bytes = static_cast<size_t>(c.count) * item * (many ? size_t(size()) : 1);
  const bool writes = c.kind == CallKind::kAllReduce || c.kind == CallKind::kReduce;
  match_call(c, locate(c.in, bytes), writes ? locate(c.out, bytes) : 0, deadline);
  bool direct = true;
  for (int r = 0; r < size(); ++r) {
    const bool root = r == c.peer;
    const bool reads = c.kind != CallKind::kBroadcast || root;
    const bool written = c.kind == CallKind::kAllReduce || (c.kind == CallKind::kReduce && root);
    direct = direct && (!reads || descriptor(r).in != kNotShared) &&
             (!written || descriptor(r).out != kNotShared);
  }
  const auto parts = static_cast<int64_t>(many ? size() : 1);
  const auto room = static_cast<int64_t>(kStageBytes / item) / parts;
  return {c, deadline, direct, item, direct ? std::max<int64_t>(c.count, 1) : room};
}

std::optional<HostMemory> Shared::open(const Call& c, const std::vector<size_t>& in_bytes,
                                       const std::vector<size_t>& out_bytes, Deadline deadline) {
  if (const auto failure = recorded(memory_.failure())) throw PeerFailure{*failure};
  const auto own_in = in_bytes[static_cast<size_t>(rank())];
  const auto own_out = out_bytes[static_cast<size_t>(rank())];
  match_call(c, own_in > 0 ? locate(c.in, own_in) : 0, own_out > 0 ? locate(c.out, own_out) : 0,
             deadline);
  HostMemory memory;
  bool visible = true;
  for (int r = 0; r < size(); ++r) {
    const auto in = descriptor(r).in, out = descriptor(r).out;
    visible = visible && in != kNotShared && out != kNotShared;
    if (!visible) break;
    const auto i = static_cast<size_t>(r);
    memory.in.push_back(in_bytes[i] > 0 ? address_of(r, in) : nullptr);
    memory.out.push_back(out_bytes[i] > 0 ? address_of(r, out) : nullptr);
  }
  if (visible) return memory;
  return std::nullopt;
}

template <class Put, class Body>
void Shared::for_each_chunk(const Collective& s, const Put& put, const Body& body) {
  for (int64_t offset = 0; offset < s.call.count; offset += s.chunk) {
    const int64_t count = std::min(s.chunk, s.call.count - offset);
    ++chunks_;
    if (!s.direct) {
      put(offset, count, own().stage[chunks_ & 1]);
      sync(s.deadline);
    }
    body(offset, count);
  }
  if (s.direct) sync(s.deadline);  // no rank changes memory that a peer still reads
}

const char* Shared::input(const Collective& s, int peer, int64_t offset, int64_t staged) const {
  return s.direct ? address_of(peer, descriptor(peer).in) + static_cast<size_t>(offset) * s.item
                  : part(peer) + static_cast<size_t>(staged) * s.item;
}

// Each rank reduces one slice of every chunk and writes it to all ranks, or to the root: into their
// memory or their staging buffers. Only slices that a peer reduces are staged.
void Shared::all_reduce(const Collective& s) {
  const Call& c = s.call;
  const bool to_all = c.kind == CallKind::kAllReduce;
  const auto begin_of = [&](int64_t count, int r) { return slice_begin(count, r, size(), s.item); };
  const auto own_in = [&](int64_t at) {
    return static_cast<const char*>(c.in) + size_t(at) * s.item;
  };
  const auto own_out = [&](int64_t at) { return static_cast<char*>(c.out) + size_t(at) * s.item; };
  const auto each_other_slice = [&](int64_t count, const auto& fn) {
    for (int r = 0; r < size(); ++r) {
      const int64_t begin = begin_of(count, r);
      if (r != rank()) fn(begin, size_t(begin_of(count, r + 1) - begin) * s.item);
    }
  };
  const auto put = [&](int64_t offset, int64_t count, char* stage) {
    each_other_slice(count, [&](int64_t begin, size_t bytes) {
      copy(stage + size_t(begin) * s.item, own_in(offset + begin), bytes);
    });
  };
  for_each_chunk(s, put, [&](int64_t offset, int64_t count) {
    const int64_t begin = begin_of(count, rank()), end = begin_of(count, rank() + 1);
    const void* sources[kMaxRanks];
    void* destinations[kMaxRanks];
    size_t writes = 0;
    for (int r = 0; r < size(); ++r) {
      const bool own_memory = !s.direct && r == rank();
      sources[r] = own_memory ? own_in(offset + begin) : input(s, r, offset + begin, begin);
      if (!to_all && r != c.peer) continue;
      destinations[writes++] =
          own_memory ? own_out(offset + begin)
          : s.direct ? address_of(r, descriptor(r).out) + size_t(offset + begin) * s.item
                     : part(r) + size_t(begin) * s.item;
    }
    reduce_vectors(c.dtype, c.op, {sources, size_t(size())}, {destinations, writes}, end - begin,
                   size());
    if (s.direct) return;
    sync(s.deadline);
    if (to_all || rank() == c.peer)
      each_other_slice(count, [&](int64_t at, size_t bytes) {
        copy(own_out(offset + at), part(rank()) + size_t(at) * s.item, bytes);
      });
  });
}

void Shared::reduce_scatter(const Collective& s) {
  const Call& c = s.call;
  const auto n = static_cast<size_t>(size());
  for_each_chunk(s, put_parts(s), [&](int64_t offset, int64_t count) {
    const void* sources[kMaxRanks];
    for (int r = 0; r < size(); ++r)
      sources[r] = input(s, r, rank() * c.count + offset, rank() * count);
    void* const out[] = {static_cast<char*>(c.out) + size_t(offset) * s.item};
    reduce_vectors(c.dtype, c.op, {sources, n}, out, count, size());
  });
}

void Shared::all_gather(const Collective& s) {
  const Call& c = s.call;
  const auto put = [&](int64_t offset, int64_t count, char* stage) {
    copy(stage, static_cast<const char*>(c.in) + size_t(offset) * s.item, size_t(count) * s.item);
  };
  for_each_chunk(s, put, [&](int64_t offset, int64_t count) {
    for (int r = 0; r < size(); ++r)
      copy(static_cast<char*>(c.out) + size_t(r * c.count + offset) * s.item,
           input(s, r, offset, 0), size_t(count) * s.item);
  });
}

void Shared::broadcast(const Collective& s) {
  const Call& c = s.call;
  const bool root = rank() == c.peer;
  const auto put = [&](int64_t offset, int64_t count, char* stage) {
    if (root)
      copy(stage, static_cast<const char*>(c.in) + size_t(offset) * s.item, size_t(count) * s.item);
  };
  for_each_chunk(s, put, [&](int64_t offset, int64_t count) {
    if (!root)
      copy(static_cast<char*>(c.out) + size_t(offset) * s.item, input(s, c.peer, offset, 0),
           size_t(count) * s.item);
  });
}

void Shared::all_to_all(const Collective& s) {
  const Call& c = s.call;
  for_each_chunk(s, put_parts(s), [&](int64_t offset, int64_t count) {
    for (int r = 0; r < size(); ++r)
      copy(static_cast<char*>(c.out) + size_t(r * c.count + offset) * s.item,
           input(s, r, rank() * c.count + offset, rank() * count), size_t(count) * s.item);
  });
}

// --- messages -----------------------------------------------------------------------------------

void Shared::send(const Call& c, Deadline deadline) {
  RingBuffer& out = memory_.ring_buffer(rank(), c.peer);
  const auto put = [&](const char* from, size_t bytes) {
    while (bytes > 0) {
      const auto room = [&] {
        return kRingBytes - (out.written.load() - out.read.load(std::memory_order_acquire));
      };
      if (room() == 0) {
        // The peer may be blocked sending to us: receiving its messages unblocks it.
        const auto ready = [&] {
          for (int r = 0; r < size(); ++r) drain(r);
          return room() > 0;
        };
        wait(
            ready, [&](int r) { return r == c.peer; }, deadline);
      }
      const size_t now = std::min<size_t>(bytes, room());
      copy_into(out, out.written, from, now);
      out.written.store(out.written + now, std::memory_order_release);
      fence_before_wake();
      wake(memory_.slot(c.peer));
      from += now;
      bytes -= now;
    }
  };
  const MessageHeader head{c.tag, static_cast<uint64_t>(c.count) * size_of(c.dtype)};
  put(reinterpret_cast<const char*>(&head), sizeof head);
  put(static_cast<const char*>(c.in), head.bytes);
}

bool Shared::drain(int from) {
  RingBuffer& in = memory_.ring_buffer(from, rank());
  auto& received = received_[static_cast<size_t>(from)];
  bool moved = false;
  for (;;) {
    const uint64_t there =
        in.written.load(std::memory_order_acquire) - in.read.load(std::memory_order_relaxed);
    size_t taken = 0;
    if (received.empty() || received.back().arrived == received.back().bytes.size()) {
      MessageHeader head{};
      if (there < sizeof head) break;
      copy_out(in, in.read, reinterpret_cast<char*>(&head), taken = sizeof head);
      received.push_back({static_cast<int>(head.tag), std::string(head.bytes, '\0')});
    } else {
      ReceivedMessage& message = received.back();
      taken = std::min<size_t>(there, message.bytes.size() - message.arrived);
      if (taken == 0) break;
      copy_out(in, in.read, message.bytes.data() + message.arrived, taken);
      message.arrived += taken;
    }
    in.read.store(in.read + taken, std::memory_order_release);
    moved = true;
  }
  if (moved) {
    fence_before_wake();
    wake(memory_.slot(from));
  }
  return moved;
}

void Shared::receive(const Call& c, Deadline deadline) {
  auto& received = received_[static_cast<size_t>(c.peer)];
  const auto found = [&] {
    return std::find_if(received.begin(), received.end(), [&](const ReceivedMessage& l) {
      return l.tag == c.tag && l.arrived == l.bytes.size();
    });
  };
  const auto ready = [&] {
    drain(c.peer);
    return found() != received.end();
  };
  wait(
      ready, [&](int r) { return r == c.peer; }, deadline);
  const auto message = found();
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  check_arg(message->bytes.size() == bytes, to_string(c), " on rank ", rank(), ": a message of ",
            message->bytes.size(), " bytes came; expected ", bytes,
            "; were both ranks fed batches of the same size?");
  copy(c.out, message->bytes.data(), bytes);
  received.erase(message);
}

}  // namespace fleetx::comm
