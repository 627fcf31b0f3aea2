// Data sets and loaders.
#include "bindings/bindings.h"

namespace fleetx::python {

void bind_data(py::module_&) {}

}  // namespace fleetx::python
