// A program under construction, and what tests ask about it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/nn/nn.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {

using ir::Var;

struct Net {
  ir::Program main, startup;
  ir::Builder b{main, startup};

  const ir::Op& last() const { return main.ops().back(); }
  // The op of the startup program that gives a parameter or state its first value.
  const ir::Op& init_of(const std::string& name) const {
    for (const ir::Op& op : startup.ops())
      if (op.writes(name)) return op;
    throw std::runtime_error("nothing initializes " + name);
  }
  ir::Names parameter_names() const {
    ir::Names names;
    for (const ir::VarInfo* p : main.parameters()) names.push_back(p->name);
    return names;
  }
  ~Net() {
    EXPECT_NO_THROW(ir::verify(main));
    EXPECT_NO_THROW(ir::verify(startup));
  }
};

// "fc_test.cc:12": how an error names a line of the test.
inline std::string line_of(int line, std::source_location where = std::source_location::current()) {
  const std::string file = where.file_name();
  return str(file.substr(file.find_last_of('/') + 1), ":", line, ":");
}

}  // namespace fleetx::testing
