// The parts of the Python module `_fleetx`. Each adds its classes and functions to the module; none
// holds logic: what a call means is decided in fleetx/. Names of variables, not handles, cross the
// border.
#pragma once

#include <pybind11/pybind11.h>

namespace fleetx::python {

namespace py = pybind11;

void bind_errors(py::module_& m);
void bind_ir(py::module_& m);
void bind_runtime(py::module_& m);
void bind_nn(py::module_& m);
void bind_optim(py::module_& m);
void bind_data(py::module_& m);
void bind_samples(py::module_& m);
void bind_roles(py::module_& m);
void bind_fleet(py::module_& m);
void bind_models(py::module_& m);

}  // namespace fleetx::python
