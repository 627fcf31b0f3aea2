#include "fleetx/base/interrupt.h"

#include <utility>

namespace fleetx {
namespace {

thread_local void (*question)() = nullptr;

}  // namespace

InterruptCheck::InterruptCheck(void (*check)()) : outer_(std::exchange(question, check)) {}
InterruptCheck::~InterruptCheck() { question = outer_; }

void check_interrupt() {
  if (question != nullptr) question();
}

bool interruptible() { return question != nullptr; }

}  // namespace fleetx
