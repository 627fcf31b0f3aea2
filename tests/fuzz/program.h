// What both program targets promise: input is either refused with an Error that is no bug of ours,
// or gives a program that both file forms keep as it is.
#pragma once

#include <cstdlib>
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"

namespace fleetx {

template <class Parse>
void check_program_parser(const Parse& parse, std::string_view input) {
  ir::Program program;
  try {
    program = parse(input, "fuzz");
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::kInternal) return;
    std::cerr << "refused as a bug of ours: " << e.what() << '\n';
    std::abort();
  }
  if (ir::parse_text(ir::to_text(program)) == program &&
      ir::parse_proto(ir::to_proto(program)) == program)
    return;
  std::cerr << "a round trip changes the program:\n" << ir::to_text(program) << '\n';
  std::abort();
}

}  // namespace fleetx
