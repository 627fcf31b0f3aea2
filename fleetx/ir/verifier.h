// Checks that a Program makes sense: slots and attributes fit the op, every variable is declared
// and defined before it is read, recorded types are what infer says. Run after every pass and after
// reading a file.
#pragma once

#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

// `stage` starts the message: "after pass 'fuse_bn_relu': ...". Throws kInvalidArgument naming op,
// variable, line.
void verify(const Program& program, std::string_view stage = "");

// While one of these lives, its thread verifies nothing: for programs that are only tried. The one
// that is taken is made again, and verified.
class Unverified {
 public:
  Unverified();
  ~Unverified();
  Unverified(const Unverified&) = delete;
  Unverified& operator=(const Unverified&) = delete;
};

}  // namespace fleetx::ir
