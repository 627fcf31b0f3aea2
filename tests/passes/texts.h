// Passes are tested on program texts: what goes in, what comes out.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/passes/pass.h"

namespace fleetx::passes {

// The program as the pass leaves it, in the form in which parse_text + to_text would print `after`.
inline void expect_rewrite(void (*pass)(ir::Program&, const Options&), const std::string& before,
                           const std::string& after, const ir::Names& keep = {}) {
  ir::Program program = ir::parse_text(before, "before");
  const ir::Program wanted = ir::parse_text(after, "after");
  pass(program, {.keep = keep});
  ir::verify(program, "rewritten");
  EXPECT_EQ(ir::to_text(program), ir::to_text(wanted));
}

inline void expect_unchanged(void (*pass)(ir::Program&, const Options&), const std::string& text,
                             const ir::Names& keep = {}) {
  expect_rewrite(pass, text, text, keep);
}

}  // namespace fleetx::passes
