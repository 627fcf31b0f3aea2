// The Python module `_fleetx`, on which the packages `paddle` and `fleetx` stand.
#include "bindings/bindings.h"
#include "bindings/gil.h"
#include "bindings/text.h"

PYBIND11_MODULE(_fleetx, m) {
  m.doc() = "The C++ side of FleetX; use the packages `paddle` and `fleetx`.";
  fleetx::python::watch_the_end_of_the_interpreter(m);
  fleetx::python::bind_errors(m);
  fleetx::python::bind_ir(m);
  fleetx::python::bind_runtime(m);
  fleetx::python::bind_nn(m);
  fleetx::python::bind_optim(m);
  fleetx::python::bind_data(m);
  fleetx::python::bind_samples(m);
  fleetx::python::bind_text(m);
  fleetx::python::bind_roles(m);
  fleetx::python::bind_fleet(m);
  fleetx::python::bind_models(m);
}
