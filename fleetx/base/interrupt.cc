#include "fleetx/base/interrupt.h"

#include <utility>

namespace fleetx {
namespace {

thread_local const InterruptCheck* innermost = nullptr;

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check)
    : check_(std::move(check)), outer_(std::exchange(innermost, this)) {}
InterruptCheck::~InterruptCheck() { innermost = outer_; }

void check_interrupt() {
  if (innermost != nullptr) innermost->check_();
}

bool interruptible() { return innermost != nullptr; }

}  // namespace fleetx
