// Who owns which parameter of a sharded job: its update, its state, and what else a stage divides.
//
//   const Owners owners(main, training.parameters, {.group = "dp/4", .rank = 1, .ranks = 4});
//   owners.of("fc_0.w_0") == 2; owners.is_own("fc_0.w_0") == false
//
// Whole parameters, the largest first, each to the rank that has least so far: the shares differ by
// less than the size of one parameter. The same on all ranks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ir/program.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

class Owners {
 public:
  struct Among {
    std::string group;
    int rank = 0, ranks = 1;
  };

  Owners(const ir::Program& main, const std::vector<ir::Training::Parameter>& parameters,
         Among among);

  int of(std::string_view parameter) const;
  bool is_own(std::string_view parameter) const { return of(parameter) == among_.rank; }
  const std::string& group() const { return among_.group; }
  int ranks() const { return among_.ranks; }
  // Bytes of parameters of each rank.
  const std::vector<double>& loads() const { return loads_; }

 private:
  Among among_;
  std::map<std::string, int, std::less<>> owners_;
  std::vector<double> loads_;
};

// Of a gradient, in its attributes: it is that of the owner alone, and not averaged any more.
inline constexpr const char* kOwnerAttr = "owner";

// A state that only rank `owner` of the group has, in both programs.
void place_with_owner(Programs& programs, const std::string& state, const std::string& group,
                      int owner);

}  // namespace fleetx::strategies
