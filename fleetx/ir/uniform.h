// Which values are the same on all ranks of a group. A value is uniform along a group if it is
// computed only from constants, from state that is replicated along the group, and from results
// that a collective over the group gives to everybody. What is fed, drawn per sample, or kept per
// rank is not.
//
// Strategies place state by it (statistics of a worker's own batch are per rank), and a collective
// may have a guard only if the guard is uniform along its group: else one rank would wait for
// another that does not come.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

class Uniform {
 public:
  // Ranks of a group that divide layers work on one batch: all of them are fed the same.
  enum class Feeds : uint8_t { kOwn, kSame };
  // `group` is an axis, or several joined by '+' (see base/mesh.h).
  Uniform(const Program& program, std::string_view group, Feeds feeds = Feeds::kOwn);

  // At the end of a step.
  bool holds(std::string_view var) const { return uniform_.contains(var); }
  // Persistable variables that get values of one rank only, although they are declared replicated.
  const std::set<std::string, std::less<>>& diverging() const { return diverging_; }
  // Walks the program; `visit` is called before each op with what is uniform there.
  using Visit =
      std::function<void(const Op& op, const std::set<std::string, std::less<>>& uniform)>;
  void walk(const Visit& visit);

 private:
  bool along(std::string_view axis) const;
  bool is_uniform_at_start(const VarInfo& info) const;
  void run(const Op& op);

  const Program& p_;
  std::vector<std::string> axes_;
  Feeds feeds_;
  std::set<std::string, std::less<>> uniform_, diverging_;
};

}  // namespace fleetx::ir
