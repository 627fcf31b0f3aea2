// Copies between two layouts of one tensor. The plan asks for them here; ops/ knows how to make
// them and registers itself at start-up, so that runtime/ sees neither ops nor oneDNN.
#pragma once

#include <memory>

#include "fleetx/kernel/kernel.h"

namespace fleetx::kernel {

// A kernel whose pointers are [0] = source, [1] = destination; no scratch. Both descriptions have
// the same dtype and shape. Padding of the destination is filled with zeros.
std::unique_ptr<Kernel> make_reorder(const Desc& from, const Desc& to);

using MakeReorder = std::unique_ptr<Kernel> (*)(const Desc& from, const Desc& to);

struct RegisterReorder {
  explicit RegisterReorder(MakeReorder make);
};

}  // namespace fleetx::kernel
