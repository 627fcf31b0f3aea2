// Expects an Error of one kind whose message contains all the given parts.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "fleetx/base/error.h"

namespace fleetx::testing {

template <class Fn>
void expect_error(Error::Kind kind, std::initializer_list<std::string_view> parts, const Fn& fn) {
  try {
    fn();
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.kind()), to_string(kind)) << e.what();
    for (const std::string_view part : parts)
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos)
          << "'" << part << "' is not in: " << e.what();
    return;
  }
  ADD_FAILURE() << "no error; expected " << to_string(kind);
}

}  // namespace fleetx::testing
