// What tests ask of errors.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "fleetx/base/error.h"

namespace fleetx::testing {

// An Error of this kind whose message contains all the given parts.
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

// The message of the error that fn throws, a mistake of the user; fails where it throws none.
template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.kind()), to_string(Error::Kind::kInvalidArgument)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

}  // namespace fleetx::testing
