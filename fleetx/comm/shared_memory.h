// The layout of the memory that the ranks of one host share: per rank a slot with a phase counter,
// the descriptor of its current call and staging buffers; per pair of ranks a ring buffer for
// messages. Used by the backends local (threads) and shm (processes). All zero is a valid initial
// state.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

inline constexpr size_t kInlineBytes = 2048;  // largest all-reduce that is copied into the slot
inline constexpr size_t kStageBytes = size_t{128} << 10;  // a staging buffer
inline constexpr size_t kRingBytes = size_t{256} << 10;

inline constexpr int kMaxRanks = 1024;  // of one host

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

// The call that a rank makes. Peers compare it with their own and find its memory.
struct CallDescriptor {
  CallKind kind;
  DType dtype;
  ReduceOp op;
  int32_t peer;
  int64_t count;
  // Shared offsets of its memory; kNotShared: it must be copied.
  uint64_t in, out;
};
inline constexpr uint64_t kNotShared = ~uint64_t{0};

enum class Presence : uint32_t { kHere, kLeft };

// The phase that a rank has reached and its call, in one cache line: a peer that waits for the
// phase gets the call with the same transfer.
struct alignas(64) Arrival {
  std::atomic<uint32_t> phase;
  CallDescriptor call;
};

struct Slot {
  // Double-buffered by call: a rank that is one call behind may still read the other.
  Arrival arrivals[2];
  // Read by every rank that arrives, written only by a rank that goes to sleep.
  alignas(64) std::atomic<uint32_t> sleeping;
  std::atomic<uint32_t> futex;  // bumped to wake the rank
  std::atomic<Presence> presence;
  alignas(64) char small[2][kInlineBytes];
  alignas(4096) char stage[2][kStageBytes];
};

struct RingBuffer {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) char bytes[kRingBytes];
};

// The first failure on this host, so that all ranks report the same one.
struct FailureRecord {
  std::atomic<uint32_t> state;  // 0: none, 1: being written, 2: complete
  int32_t rank;
  int64_t pid;
  uint32_t hangs;
  char host[256], what[256];
};

class SharedMemory {
 public:
  SharedMemory(void* base, int size) : base_(static_cast<char*>(base)), size_(size) {}
  static size_t bytes(int size);

  int size() const { return size_; }
  FailureRecord& failure() const { return *reinterpret_cast<FailureRecord*>(base_); }
  Slot& slot(int rank) const { return *reinterpret_cast<Slot*>(base_ + slot_offset(rank)); }
  RingBuffer& ring_buffer(int from, int to) const {
    return *reinterpret_cast<RingBuffer*>(
        base_ + slot_offset(size_) + static_cast<size_t>(from * size_ + to) * sizeof(RingBuffer));
  }

 private:
  static size_t slot_offset(int rank) { return 4096 + static_cast<size_t>(rank) * sizeof(Slot); }

  char* base_;
  int size_;
};

// A lost wake-up must be impossible: either the waker sees that the rank sleeps, or the rank sees
// what the waker wrote. That takes a full fence on both sides. With membarrier() the rank that goes
// to sleep pays for both, and the waker's fence is free.
void fence_before_wake();
void fence_before_sleep();

// Sleeps until wake(), while the futex has this value, at most for this time.
void wait_on_futex(std::atomic<uint32_t>& futex, uint32_t value, Milliseconds time);
void wake(Slot& slot);  // wakes its rank if it sleeps

void record(FailureRecord& record, const Failure& failure);
std::optional<Failure> recorded(const FailureRecord& record);

}  // namespace fleetx::comm
