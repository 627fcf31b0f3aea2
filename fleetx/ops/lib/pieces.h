// The kernels of concat, stack, split and unstack: one tensor whose rows are made of consecutive
// pieces, each of which is a tensor of its own.
#pragma once

#include <memory>

#include "fleetx/ir/grad.h"
#include "fleetx/kernel/kernel.h"

namespace fleetx::ops {

// Dimensions before `axis` (of the pieces) count rows, the others lie in a row.
std::unique_ptr<kernel::Kernel> make_join(kernel::Prepare& p, std::string_view pieces, int axis,
                                          std::string_view whole);
std::unique_ptr<kernel::Kernel> make_cut(kernel::Prepare& p, std::string_view whole, int axis,
                                         std::string_view pieces);

// Names for the gradients of a list slot, where one variable may stand twice.
ir::Names gradient_names(ir::Grad& g, std::string_view slot);

}  // namespace fleetx::ops
