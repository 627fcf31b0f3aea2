// The memory through which the ranks of one host meet: a slot per rank with a counter of the phases
// it has reached, what it is about to do, and room for data; and a ring of bytes for messages from
// each rank to each other. Used by the backends local (heap) and shm (memory of several processes).
// All zero is a valid beginning.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

inline constexpr size_t kInlineBytes = 2048;              // data of a small call
inline constexpr size_t kStageBytes = size_t{128} << 10;  // a piece of a large one
inline constexpr size_t kRingBytes = size_t{256} << 10;

inline constexpr int kMostRanks = 1024;  // of one host

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

// What a rank is about to do. Others compare it with their own and find its memory.
struct Post {
  CallKind kind;
  DType dtype;
  ReduceOp op;
  int32_t peer;
  int64_t count;
  // Where its memory is, in a form that others understand; kNowhere: it must be copied.
  uint64_t in, out;
};
inline constexpr uint64_t kNowhere = ~uint64_t{0};

enum class Presence : uint32_t { kHere, kLeft };

// The phase that a rank has reached and the call it is in, in one cache line: who waits for the one
// has the other when it comes.
struct alignas(64) Arrival {
  std::atomic<uint32_t> phase;
  Post post;
};

struct Slot {
  // Calls use them in turn: a rank that is one call behind may still read the other.
  Arrival arrivals[2];
  // Read by everybody who arrives, written only by one who goes to sleep.
  alignas(64) std::atomic<uint32_t> asleep;
  std::atomic<uint32_t> bell;  // futex
  std::atomic<Presence> presence;
  alignas(64) char small[2][kInlineBytes];
  alignas(4096) char stage[2][kStageBytes];
};

struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) char bytes[kRingBytes];
};

// The first failure that a rank of this host has met, so that all name the same.
struct FailureRecord {
  std::atomic<uint32_t> state;  // 0: none, 1: being written, 2: there
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
  Ring& ring(int from, int to) const {
    return *reinterpret_cast<Ring*>(base_ + slot_offset(size_) +
                                    static_cast<size_t>(from * size_ + to) * sizeof(Ring));
  }

 private:
  static size_t slot_offset(int rank) { return 4096 + static_cast<size_t>(rank) * sizeof(Slot); }

  char* base_;
  int size_;
};

// One who tells something and one who goes to sleep must not miss each other: either the first sees
// that the other sleeps, or the other sees what it is told. That takes a barrier on both sides; the
// system lets the sleeper, who has time, pay for both.
void barrier_of_wakers();
void barrier_of_sleepers();

// Sleeps until somebody rings, `value` is not the bell's any more, or the time is over.
void sleep_on(std::atomic<uint32_t>& bell, uint32_t value, Milliseconds time);
void ring(Slot& slot);  // wakes its rank if it sleeps

void record(FailureRecord& record, const Failure& failure);
std::optional<Failure> recorded(const FailureRecord& record);

}  // namespace fleetx::comm
