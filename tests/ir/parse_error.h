// What the parser says about a text.
#pragma once

#include <string>

#include "fleetx/base/error.h"
#include "fleetx/ir/text.h"

namespace fleetx::ir {

// The message of its error, or "no error".
inline std::string parse_error(const std::string& text) {
  try {
    (void)parse_text(text, "p.txt");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace fleetx::ir
