#include "fleetx/ps/row_life.h"

#include <cmath>
#include <sstream>

#include "fleetx/base/error.h"

namespace fleetx::ps {

void RowLife::check(std::string_view table) const {
  check_arg(decay > 0 && decay <= 1, "sparse table '", table, "': show_click_decay_rate is ", decay,
            "; expected more than 0 and at most 1");
  check_arg(unseen_days >= 0, "sparse table '", table, "': delete_after_unseen_days is ",
            unseen_days, "; expected 0 or more");
  check_arg(
      std::isfinite(nonclick_weight) && std::isfinite(click_weight) && std::isfinite(threshold),
      "sparse table '", table, "': nonclk_coeff, click_coeff and delete_threshold must be ",
      "finite");
}

std::string RowLife::text() const {
  std::ostringstream out;
  out.precision(9);
  out << "decay " << decay << " score " << nonclick_weight << " " << click_weight << " from "
      << threshold << " unseen " << unseen_days;
  return out.str();
}

RowUse use_on(const RowLife& life, const RowUse& use, float day) {
  if (day <= use.day) return use;
  const float left = std::pow(life.decay, day - use.day);
  return {use.show * left, use.click * left, day};
}

float score_of(const RowLife& life, const RowUse& use) {
  return life.nonclick_weight * (use.show - use.click) + life.click_weight * use.click;
}

bool lives_on(const RowLife& life, const RowUse& use, float day, float threshold) {
  return score_of(life, use_on(life, use, day)) >= threshold &&
         day - use.day - 1 <= static_cast<float>(life.unseen_days);
}

}  // namespace fleetx::ps
