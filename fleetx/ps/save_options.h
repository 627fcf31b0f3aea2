// What is saved of tables; snapshot.h says in which form.
#pragma once

#include <cstdint>

namespace fleetx::ps {

struct SaveOptions {
  enum class Mode : uint8_t {
    kAll,
    kBase,   // all, and from then on changes are counted
    kDelta,  // what has changed since the last base, into its folder
  };
  Mode mode = Mode::kAll;
  bool text = false;  // besides, rows as text
};

}  // namespace fleetx::ps
