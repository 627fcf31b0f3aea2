// What a table knows of the use of its rows, where it is asked to (ShowClickEntry): how often a row
// was shown and clicked, fading from day to day, and when it was seen last. These are three floats
// behind the states of a record; rows of other tables do not have them. A day ends with a shrink:
// the table counts days, and a row only remembers its last one, so that no row has to be touched
// for the others to pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fleetx::ps {

struct RowLife {
  float decay = 0.98f;  // what is left of show and click after a day
  float nonclick_weight = 0.1f, click_weight = 1;
  float threshold = 0.8f;    // a row with a lower score is dropped,
  int64_t unseen_days = 30;  // and so is one that was not seen for more whole days than these

  void check(std::string_view table) const;  // kInvalidArgument names what is wrong
  std::string text() const;
};

// Behind the states of a record, in this order.
struct RowUse {
  float show = 0, click = 0, day = 0;
};
inline constexpr int64_t kUseFloats = 3;

// As of the day; with what has faded since the row was last seen.
RowUse use_on(const RowLife& life, const RowUse& use, float day);
float score_of(const RowLife& life, const RowUse& use);
// `day` has just begun.
bool lives_on(const RowLife& life, const RowUse& use, float day, float threshold);

}  // namespace fleetx::ps
