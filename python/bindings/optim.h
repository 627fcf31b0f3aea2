// The optimizer that a dict of Python describes: {"kind": "momentum", "lr": 0.1, "mu": 0.9, ...}.
#pragma once

#include <memory>

#include "bindings/builder.h"
#include "fleetx/optim/optimizer.h"

namespace fleetx::python {

std::unique_ptr<optim::Optimizer> make_optimizer(PyBuilder& builder, const py::dict& options);

}  // namespace fleetx::python
