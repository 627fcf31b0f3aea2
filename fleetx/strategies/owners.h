// Who owns which parameter of a sharded job: its update, its state, and what else a stage divides.
//
//   const Owners owners(main, training.parameters, {.group = "dp/4", .rank = 1, .ranks = 4});
//   owners.of("fc_0.w_0") == 2; owners.is_own("fc_0.w_0") == false
//
// Whole parameters, the largest first, each to the rank that has least so far: the shares differ by
// less than the size of one parameter. The same on all ranks. The parameters of a stage of a
// pipeline are divided between the ranks of that stage.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ir/owned.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

class Owners {
 public:
  struct Among {
    std::string group;
    int rank = 0, ranks = 1;
    int stage = 0;  // of a pipeline, at which this rank is
  };

  Owners(const ir::Program& main, const std::vector<ir::Training::Parameter>& parameters,
         Among among);

  int of(std::string_view parameter) const { return find(parameter).rank; }
  // Not of another stage of a pipeline.
  bool is_here(std::string_view parameter) const;
  bool is_own(std::string_view parameter) const {
    return of(parameter) == among_.rank && is_here(parameter);
  }
  // Where the state of a parameter is, of whichever stage.
  ir::Owner place(std::string_view parameter) const;
  const std::string& group() const { return among_.group; }
  int ranks() const { return among_.ranks; }
  // Bytes of parameters of each rank of this stage.
  const std::vector<double>& loads() const { return loads_; }

 private:
  struct Found {
    int stage = kNoStage, rank = 0;
  };
  static constexpr int kNoStage = -1;
  const Found& find(std::string_view parameter) const;

  Among among_;
  std::map<std::string, Found, std::less<>> owners_;
  std::vector<double> loads_;
};

// Whether the workers have reduced the gradient to the owner of its parameter: it is not averaged
// any more.
bool has_owner(const ir::Program& main, const ir::Training::Parameter& p);
// The stage that has a parameter and its gradient, where it is not this one.
std::optional<int> other_stage_of(const ir::Program& main, const ir::Training::Parameter& p);

// A state that only the owner has, in both programs.
void place_with_owner(Programs& programs, const std::string& state, const ir::Owner& owner);

// Startup of this rank does not make it: another has it.
void forget_first_value(ir::Program& startup, const std::string& state);

}  // namespace fleetx::strategies
