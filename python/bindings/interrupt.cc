#include "bindings/interrupt.h"

#include <atomic>

#include "bindings/gil.h"

namespace fleetx::python {
namespace {

// Python's own handler only makes a note that the interpreter looks at later; ours is put in front
// of it, so that C++ knows when to ask the interpreter.
std::atomic<bool> interrupted = false;
struct sigaction pythons_own;

void note_interrupt(int signal, siginfo_t* info, void* context) {
  interrupted = true;
  if (pythons_own.sa_flags & SA_SIGINFO)
    pythons_own.sa_sigaction(signal, info, context);
  else if (pythons_own.sa_handler != SIG_DFL && pythons_own.sa_handler != SIG_IGN)
    pythons_own.sa_handler(signal);
}

void ask_python() {
  if (!interrupted.load(std::memory_order_relaxed)) return;
  interrupted = false;
  const GilHeld gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

bool on_main_thread() {
  static const auto main =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  return main == PyThread_get_thread_ident();
}

}  // namespace

Interruptible::Interruptible() {
  if (!on_main_thread() || sigaction(SIGINT, nullptr, &pythons_own) != 0) return;
  if (!(pythons_own.sa_flags & SA_SIGINFO) &&
      (pythons_own.sa_handler == SIG_DFL || pythons_own.sa_handler == SIG_IGN))
    return;
  struct sigaction ours {};
  ours.sa_sigaction = note_interrupt;
  ours.sa_flags = SA_SIGINFO | (pythons_own.sa_flags & SA_RESTART);
  if (sigaction(SIGINT, &ours, nullptr) == 0) check_.emplace(&ask_python);
}

Interruptible::~Interruptible() {
  if (check_) sigaction(SIGINT, &pythons_own, nullptr);
}

}  // namespace fleetx::python
