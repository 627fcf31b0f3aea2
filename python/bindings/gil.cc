#include "bindings/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace fleetx::python {
namespace {

std::atomic<bool> ending = false;
std::atomic<int> entering = 0;  // threads between the check of `ending` and the GIL
pthread_t main_thread;          // written before `ending`

// A thread is counted before it looks at `ending`, and `ending` is set before the count is looked
// at: the one that ends the interpreter waits for it, or it stays here.
class Entering {
 public:
  Entering() {
    ++entering;
    if (!ending || pthread_equal(pthread_self(), main_thread)) return;
    --entering;
    for (;;) pause();
  }
  ~Entering() { --entering; }
};

// Called in the main thread: by Python's atexit, after the functions that scripts registered.
void end() {
  using namespace std::chrono_literals;
  main_thread = pthread_self();
  ending = true;
  const GilReleased others_come_in;
  const auto limit = std::chrono::steady_clock::now() + 5s;  // a thread may keep the GIL for long
  while (entering > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
}

}  // namespace

GilReleased::~GilReleased() {
  const Entering in;
  PyEval_RestoreThread(state_);
}

GilHeld::GilHeld() {
  // Who has the GIL must go on: others wait for it, the one that ends the interpreter too.
  std::optional<Entering> in;
  if (!PyGILState_Check()) in.emplace();
  state_ = PyGILState_Ensure();
}

void watch_the_end_of_the_interpreter(py::module_& m) {
  m.def("hold_threads", &end);
  py::module_::import("atexit").attr("register")(m.attr("hold_threads"));
}

}  // namespace fleetx::python
