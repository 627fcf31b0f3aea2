// What the targets promise: input is taken, or refused with an error that says so.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iostream>

#include "fleetx/base/error.h"

namespace fleetx::testing {

// Aborts, which is a finding, where the error is of another kind.
inline void expect_refusal(const Error& e,
                           std::initializer_list<Error::Kind> kinds = {Error::Kind::kCorrupt}) {
  if (std::find(kinds.begin(), kinds.end(), e.kind()) != kinds.end()) return;
  std::cerr << "refused, but not as damaged: " << e.what() << '\n';
  std::abort();
}

}  // namespace fleetx::testing
