// Whether an op can compute in 16 bits, forward and backward, asked of the op itself: it is built
// once on variables of those types, with its gradient, in a program that is thrown away. What an
// op's infer refuses, its kernels do not have. So there is no second list of what kernels can do.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::strategies {

class HalfSupport {
 public:
  // Of each variable of each slot.
  using DTypes = std::vector<std::vector<DType>>;
  using NeedsGradient = std::function<bool(const std::string& variable)>;

  // The dtypes of the outputs; null where the op cannot compute with these inputs, or
  // has no gradient of an input that needs one and becomes 16 bits wide.
  const DTypes* outputs(const ir::Program& main, const ir::Op& op, const DTypes& inputs,
                        const NeedsGradient& needs);

 private:
  struct Answer {
    bool possible = false;
    DTypes outputs = {};
  };
  static Answer ask(const ir::Program& main, const ir::Op& op, const DTypes& inputs,
                    const NeedsGradient& needs);

  std::map<std::string, Answer> answers_;  // by op, attributes and types
};

}  // namespace fleetx::strategies
