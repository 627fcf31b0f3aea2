// Global norms of gradients that the ranks of a group divide between them.
#pragma once

#include <functional>
#include <string>

#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {

// Each rank takes the norm of the gradients of its own parameters; they are added up over `group`.
//
//   n = squared_l2_norm([dw, dv])      n = squared_l2_norm([dw])            dv is not its own
//                                      [n] = all_reduce([n]) {group=..., op="sum"}
void add_up_norms(ir::Rewriter& rw, const ir::Training& training, const std::string& group,
                  const std::function<bool(const std::string& parameter)>& is_own);

}  // namespace fleetx::strategies
