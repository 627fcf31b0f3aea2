#include "fleetx/runtime/interrupt.h"

#include <atomic>

namespace fleetx::runtime {
namespace {

std::atomic<void (*)()> question = nullptr;

}  // namespace

void set_interrupt(void (*check)()) { question = check; }

void check_interrupt() {
  if (const auto check = question.load(std::memory_order_relaxed)) check();
}

}  // namespace fleetx::runtime
