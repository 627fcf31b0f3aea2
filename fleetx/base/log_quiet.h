// While one of these lives, its thread logs nothing but errors: for work that is only tried.
#pragma once

namespace fleetx::log {

class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace fleetx::log
