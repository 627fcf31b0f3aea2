#include "fleetx/comm/shared_memory.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace fleetx::comm {

size_t SharedMemory::bytes(int size) {
  return slot_offset(size) +
         static_cast<size_t>(size) * static_cast<size_t>(size) * sizeof(RingBuffer);
}

namespace {

// The same for all processes of a host, because it is a property of its kernel.
bool have_membarrier() {
  static const bool have =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return have;
}

}  // namespace

void fence_before_wake() {
  if (have_membarrier())
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void fence_before_sleep() {
  if (!have_membarrier() || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void wait_on_futex(std::atomic<uint32_t>& futex, uint32_t value, Milliseconds time) {
  const timespec wait{time.count() / 1000, (time.count() % 1000) * 1'000'000};
  syscall(SYS_futex, &futex, FUTEX_WAIT, value, &wait, nullptr, 0);
}

void wake(Slot& slot) {
  if (slot.sleeping.load(std::memory_order_relaxed) == 0) return;
  slot.futex.fetch_add(1);
  syscall(SYS_futex, &slot.futex, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void record(FailureRecord& record, const Failure& failure) {
  uint32_t none = 0;
  if (!record.state.compare_exchange_strong(none, 1)) return;
  record.rank = failure.rank;
  record.pid = failure.pid;
  record.hangs = failure.hangs;
  std::strncpy(record.host, failure.host.c_str(), sizeof record.host - 1);
  std::strncpy(record.what, failure.what.c_str(), sizeof record.what - 1);
  record.state = 2;
}

std::optional<Failure> recorded(const FailureRecord& record) {
  if (record.state != 2) return std::nullopt;
  return Failure{record.rank, record.host, record.pid, record.what, record.hangs != 0};
}

}  // namespace fleetx::comm
