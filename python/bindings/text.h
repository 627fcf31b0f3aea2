// Tokenizers and batches of text, as the parts of bindings.h.
#pragma once

#include "bindings/bindings.h"

namespace fleetx::python {

void bind_text(py::module_& m);

}  // namespace fleetx::python
