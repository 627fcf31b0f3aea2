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

// How long a rank looks before it sleeps: being woken costs 40 us. Between bursts it lets others
// have the core, since the rank it waits for may need just that. A lane gives up soon: the
// computation wants its core.
struct Patience {
  int bursts, looks;
};
constexpr Patience kPatience{60, 60}, kLanePatience{10, 20}, kCrowdedPatience{2000, 1};
// How often one who sleeps looks whether the others live.
constexpr Milliseconds kNap{20};

// Slices of a vector begin on cache lines, so that two ranks never write the same one.
int64_t slice_begin(int64_t count, int rank, int size, size_t item) {
  const int64_t line = 64 / static_cast<int64_t>(item);
  if (rank == size) return count;
  return std::min(count, count / size * rank / line * line);
}

struct LetterHead {
  int64_t tag;
  uint64_t bytes;
};

void copy_into(Ring& ring, uint64_t at, const char* from, size_t bytes) {
  const size_t begin = at % kRingBytes, first = std::min(bytes, kRingBytes - begin);
  copy(ring.bytes + begin, from, first);
  copy(ring.bytes, from + first, bytes - first);
}

void copy_out(const Ring& ring, uint64_t at, char* to, size_t bytes) {
  const size_t begin = at % kRingBytes, first = std::min(bytes, kRingBytes - begin);
  copy(to, ring.bytes + begin, first);
  copy(to + first, ring.bytes, bytes - first);
}

}  // namespace

Shared::Shared(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
               Milliseconds timeout, SharedMemory memory)
    : Communicator(rank, std::move(members), std::move(store), timeout),
      memory_(memory),
      crowded_(size() > sysconf(_SC_NPROCESSORS_ONLN)),
      letters_(static_cast<size_t>(size())) {}

Shared::~Shared() = default;

void Shared::leave() {
  stop_lane();
  own().presence = Presence::kLeft;
  ring_all();
}

// --- waiting ------------------------------------------------------------------------------------

void Shared::arrive() {
  own().arrivals[calls_ & 1].phase.store(++phase_, std::memory_order_release);
  ring_all();
}

void Shared::ring_all() {
  barrier_of_wakers();
  for (int r = 0; r < size(); ++r) ring(memory_.slot(r));
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
  const Patience patience = crowded_          ? kCrowdedPatience
                            : Lane::on_lane() ? kLanePatience
                                              : kPatience;
  for (int burst = 0; burst < patience.bursts; ++burst) {
    for (int look = 0; look < patience.looks; ++look) {
      if (ready()) return;
      _mm_pause();
    }
    sched_yield();
  }
  Slot& me = own();
  for (;;) {
    const uint32_t bell = me.bell.load();
    me.asleep.store(1);
    barrier_of_sleepers();
    const bool there = ready();
    if (!there) sleep_on(me.bell, bell, std::min(kNap, Milliseconds(1 + left_ms(deadline))));
    me.asleep.store(0);
    if (there || ready()) return;
    look_around(ready, pending, deadline);
  }
}

template <class Ready, class Pending>
void Shared::look_around(const Ready& ready, const Pending& pending, Deadline deadline) {
  try {
    check_interrupt();
  } catch (...) {
    record(memory_.failure(), interrupted());
    ring_all();
    throw;
  }
  if (const auto failure = recorded(memory_.failure())) throw PeerFailure{*failure};
  throw_if_store_failed();
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || !pending(r)) continue;
    const bool left = memory_.slot(r).presence == Presence::kLeft;
    // What it did last it did before it went.
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
  const Stage stage = begin(call, deadline);
  if (call.count == 0) return;
  switch (call.kind) {
    case CallKind::kAllReduce:
    case CallKind::kReduce: return all_reduce(stage);
    case CallKind::kReduceScatter: return reduce_scatter(stage);
    case CallKind::kAllGather: return all_gather(stage);
    case CallKind::kBroadcast: return broadcast(stage);
    case CallKind::kAllToAll: return all_to_all(stage);
    default: return;
  }
}

const Post& Shared::post(int peer) const { return memory_.slot(peer).arrivals[calls_ & 1].post; }

// Tells the others what this rank is about to do and hears what they are: the same, or it is a
// mistake of the program.
void Shared::meet(const Call& c, uint64_t in, uint64_t out, Deadline deadline) {
  ++calls_;
  const Post mine{c.kind, c.dtype, c.op, c.peer, c.count, in, out};
  own().arrivals[calls_ & 1].post = mine;
  sync(deadline);
  for (int r = 0; r < size(); ++r) {
    const Post& p = post(r);
    if (p.kind == c.kind && p.dtype == c.dtype && p.op == c.op && p.peer == c.peer &&
        p.count == c.count)
      continue;
    const Call other{p.kind, nullptr, nullptr, p.count, p.dtype, p.op, p.peer};
    fail(Error::Kind::kInvalidArgument,
         str("ranks of a group must make the same calls: rank ", rank(), " makes ", to_string(c),
             " where rank ", r, " makes ", to_string(other)));
  }
}

// One phase: everybody gets all vectors and computes the whole result.
void Shared::small_all_reduce(const Call& c, Deadline deadline) {
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  if (bytes > 0) std::memcpy(own().small[(calls_ + 1) & 1], c.in, bytes);  // else `in` may be null
  meet(c, kNowhere, kNowhere, deadline);
  const void* sources[kMostRanks];
  for (int r = 0; r < size(); ++r) sources[r] = memory_.slot(r).small[calls_ & 1];
  void* const out[] = {c.out};
  reduce_vectors(c.dtype, c.op, {sources, static_cast<size_t>(size())}, out, c.count, size());
}

Shared::Stage Shared::begin(const Call& c, Deadline deadline) {
  const size_t item = size_of(c.dtype);
  const bool many = c.kind == CallKind::kReduceScatter || c.kind == CallKind::kAllToAll;
  const size_t bytes = static_cast<size_t>(c.count) * item * (many ? size_t(size()) : 1);
  const bool writes = c.kind == CallKind::kAllReduce || c.kind == CallKind::kReduce;
  meet(c, locate(c.in, bytes), writes ? locate(c.out, bytes) : 0, deadline);
  bool direct = true;
  for (int r = 0; r < size(); ++r) {
    const bool root = r == c.peer;
    const bool reads = c.kind != CallKind::kBroadcast || root;
    const bool written = c.kind == CallKind::kAllReduce || (c.kind == CallKind::kReduce && root);
    direct = direct && (!reads || post(r).in != kNowhere) && (!written || post(r).out != kNowhere);
  }
  const auto parts = static_cast<int64_t>(many ? size() : 1);
  const auto room = static_cast<int64_t>(kStageBytes / item) / parts;
  return {c, deadline, direct, item, direct ? std::max<int64_t>(c.count, 1) : room};
}

template <class Put, class Body>
void Shared::pieces(const Stage& s, const Put& put, const Body& body) {
  for (int64_t offset = 0; offset < s.call.count; offset += s.piece) {
    const int64_t count = std::min(s.piece, s.call.count - offset);
    ++pieces_;
    if (!s.direct) {
      put(offset, count, own().stage[pieces_ & 1]);
      sync(s.deadline);
    }
    body(offset, count);
  }
  if (s.direct) sync(s.deadline);  // until then nobody changes what others read
}

const char* Shared::input(const Stage& s, int peer, int64_t offset, int64_t staged) const {
  return s.direct ? address_of(peer, post(peer).in) + static_cast<size_t>(offset) * s.item
                  : part(peer) + static_cast<size_t>(staged) * s.item;
}

// Each rank reduces a slice of every piece and gives it to all, or to the root: into their memory,
// or into their stage. What goes through a stage is only what others reduce.
void Shared::all_reduce(const Stage& s) {
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
  pieces(s, put, [&](int64_t offset, int64_t count) {
    const int64_t begin = begin_of(count, rank()), end = begin_of(count, rank() + 1);
    const void* sources[kMostRanks];
    void* destinations[kMostRanks];
    size_t writes = 0;
    for (int r = 0; r < size(); ++r) {
      const bool own_memory = !s.direct && r == rank();
      sources[r] = own_memory ? own_in(offset + begin) : input(s, r, offset + begin, begin);
      if (!to_all && r != c.peer) continue;
      destinations[writes++] = own_memory ? own_out(offset + begin)
                               : s.direct
                                   ? address_of(r, post(r).out) + size_t(offset + begin) * s.item
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

void Shared::reduce_scatter(const Stage& s) {
  const Call& c = s.call;
  const auto n = static_cast<size_t>(size());
  pieces(s, put_parts(s), [&](int64_t offset, int64_t count) {
    const void* sources[kMostRanks];
    for (int r = 0; r < size(); ++r)
      sources[r] = input(s, r, rank() * c.count + offset, rank() * count);
    void* const out[] = {static_cast<char*>(c.out) + size_t(offset) * s.item};
    reduce_vectors(c.dtype, c.op, {sources, n}, out, count, size());
  });
}

void Shared::all_gather(const Stage& s) {
  const Call& c = s.call;
  const auto put = [&](int64_t offset, int64_t count, char* stage) {
    copy(stage, static_cast<const char*>(c.in) + size_t(offset) * s.item, size_t(count) * s.item);
  };
  pieces(s, put, [&](int64_t offset, int64_t count) {
    for (int r = 0; r < size(); ++r)
      copy(static_cast<char*>(c.out) + size_t(r * c.count + offset) * s.item,
           input(s, r, offset, 0), size_t(count) * s.item);
  });
}

void Shared::broadcast(const Stage& s) {
  const Call& c = s.call;
  const bool root = rank() == c.peer;
  const auto put = [&](int64_t offset, int64_t count, char* stage) {
    if (root)
      copy(stage, static_cast<const char*>(c.in) + size_t(offset) * s.item, size_t(count) * s.item);
  };
  pieces(s, put, [&](int64_t offset, int64_t count) {
    if (!root)
      copy(static_cast<char*>(c.out) + size_t(offset) * s.item, input(s, c.peer, offset, 0),
           size_t(count) * s.item);
  });
}

void Shared::all_to_all(const Stage& s) {
  const Call& c = s.call;
  pieces(s, put_parts(s), [&](int64_t offset, int64_t count) {
    for (int r = 0; r < size(); ++r)
      copy(static_cast<char*>(c.out) + size_t(r * c.count + offset) * s.item,
           input(s, r, rank() * c.count + offset, rank() * count), size_t(count) * s.item);
  });
}

// --- messages -----------------------------------------------------------------------------------

void Shared::send(const Call& c, Deadline deadline) {
  Ring& out = memory_.ring(rank(), c.peer);
  const auto put = [&](const char* from, size_t bytes) {
    while (bytes > 0) {
      const auto room = [&] {
        return kRingBytes - (out.written.load() - out.read.load(std::memory_order_acquire));
      };
      if (room() == 0) {
        // While the other is busy sending to us, taking its letters lets it go on.
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
      barrier_of_wakers();
      ring(memory_.slot(c.peer));
      from += now;
      bytes -= now;
    }
  };
  const LetterHead head{c.tag, static_cast<uint64_t>(c.count) * size_of(c.dtype)};
  put(reinterpret_cast<const char*>(&head), sizeof head);
  put(static_cast<const char*>(c.in), head.bytes);
}

bool Shared::drain(int from) {
  Ring& in = memory_.ring(from, rank());
  auto& letters = letters_[static_cast<size_t>(from)];
  bool moved = false;
  for (;;) {
    const uint64_t there =
        in.written.load(std::memory_order_acquire) - in.read.load(std::memory_order_relaxed);
    size_t taken = 0;
    if (letters.empty() || letters.back().arrived == letters.back().bytes.size()) {
      LetterHead head{};
      if (there < sizeof head) break;
      copy_out(in, in.read, reinterpret_cast<char*>(&head), taken = sizeof head);
      letters.push_back({static_cast<int>(head.tag), std::string(head.bytes, '\0')});
    } else {
      Letter& letter = letters.back();
      taken = std::min<size_t>(there, letter.bytes.size() - letter.arrived);
      if (taken == 0) break;
      copy_out(in, in.read, letter.bytes.data() + letter.arrived, taken);
      letter.arrived += taken;
    }
    in.read.store(in.read + taken, std::memory_order_release);
    moved = true;
  }
  if (moved) {
    barrier_of_wakers();
    ring(memory_.slot(from));
  }
  return moved;
}

void Shared::receive(const Call& c, Deadline deadline) {
  auto& letters = letters_[static_cast<size_t>(c.peer)];
  const auto found = [&] {
    return std::find_if(letters.begin(), letters.end(), [&](const Letter& l) {
      return l.tag == c.tag && l.arrived == l.bytes.size();
    });
  };
  const auto ready = [&] {
    drain(c.peer);
    return found() != letters.end();
  };
  wait(
      ready, [&](int r) { return r == c.peer; }, deadline);
  const auto letter = found();
  const size_t bytes = static_cast<size_t>(c.count) * size_of(c.dtype);
  check_arg(letter->bytes.size() == bytes, to_string(c), " on rank ", rank(), ": a message of ",
            letter->bytes.size(), " bytes came; expected ", bytes);
  copy(c.out, letter->bytes.data(), bytes);
  letters.erase(letter);
}

}  // namespace fleetx::comm
