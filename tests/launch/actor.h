// The program that behaves as a test tells it: program/actor.cc.
#pragma once

#include <string>

namespace fleetx::testing {

inline const std::string kActor = FLEETX_LAUNCH_ACTOR;

}  // namespace fleetx::testing
