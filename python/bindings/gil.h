// The GIL: given up while C++ computes or waits, taken where C++ calls Python.
//
// Not pybind11's guards, because of threads that are still at work when the interpreter ends, such
// as readers of a script that fails. Python ends a thread that asks for the GIL then by unwinding
// its stack; with a destructor on it, as that of py::gil_scoped_release, the whole process aborts
// and its exit code is no longer that of the script. Here such a thread waits for the end of the
// process instead.
#pragma once

#include "bindings/bindings.h"

namespace fleetx::python {

// Gives the GIL up while it lives.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the GIL while it lives, in any thread. Not after the interpreter has ended.
class GilHeld {
 public:
  GilHeld();
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

// Makes threads wait from the moment on at which the interpreter begins to end. A program that has
// to leave others in order calls hold_threads() of the module before: what follows is not slowed
// down by them.
void watch_the_end_of_the_interpreter(py::module_& m);

}  // namespace fleetx::python
