// A strategy (amp, recompute, data parallel, ...) is a function from Program to Program; nothing
// else in FleetX knows strategies. One file each in fleetx/strategies/, registered by name:
//
//   class Halve final : public Strategy {
//     std::string_view name() const override { return "halve"; }
//     Traits traits() const override {
//       return {.after = {"amp"}, .conflicts = {{"twice", "both scale the loss"}}};
//     }
//     void apply(Program& main, Program& startup, const StrategyContext& c) const override { ... }
//   };
//   FLEETX_STRATEGY(halve, Halve);
//
// apply is deterministic, changes programs through Rewriter only, and neither communicates nor
// looks at a clock: any process can make the program of any rank. A registered strategy has no
// state and is safe to share.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/ir/program.h"
#include "fleetx/passes/pass.h"

namespace fleetx::strategies {

// Another strategy, and why it must not or must be there too.
struct Relation {
  std::string strategy;
  std::string reason;
};

struct Traits {
  std::vector<std::string> axes = {};   // of the mesh, that it communicates along
  std::vector<std::string> after = {};  // strategies that come first where they are asked for
  std::vector<Relation> conflicts = {};
  std::vector<Relation> needs = {};
};

struct StrategyContext {
  Mesh mesh = {};
  std::string dump_dir = "";        // where to write NN.name.txt after each strategy; "": nowhere
  std::set<std::string> skip = {};  // the user's wish to skip passes; naming a strategy is an error
  ir::Attrs options = {};  // of the strategy that is called, complete; set by apply_strategies
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string_view name() const = 0;
  virtual Traits traits() const { return {}; }
  virtual ir::Attrs options() const { return {}; }  // with their defaults
  // Throws kInvalidArgument for options that make no sense or a program that it cannot work on.
  virtual void validate(const ir::Program& /*main*/, const StrategyContext& /*context*/) const {}
  virtual void apply(ir::Program& main, ir::Program& startup,
                     const StrategyContext& context) const = 0;
  // The post-condition, checked after the verifier: throws where apply did not do what it promises.
  virtual void check(const ir::Program& /*main*/, const StrategyContext& /*context*/) const {}
};

struct Request {
  std::string name;
  ir::Attrs options = {};  // those that differ from the defaults
};

// Orders the requested strategies by their traits (the order of the requests does not matter), then
// applies one after the other. An unknown name or option, a conflict, an unmet need or the wish to
// skip a strategy is kInvalidArgument with the reason; on any error both programs are as they were.
std::vector<passes::Report> apply_strategies(ir::Program& main, ir::Program& startup,
                                             const std::vector<Request>& requested,
                                             const StrategyContext& context);

std::vector<std::string> strategy_names();  // registered ones, sorted

// Registers at static initialisation; two strategies of one name are a bug (kInternal).
struct RegisterStrategy {
  RegisterStrategy(std::string name, std::unique_ptr<Strategy> strategy);
};

#define FLEETX_STRATEGY(name, Class)                                            \
  static const ::fleetx::strategies::RegisterStrategy register_strategy_##name( \
      #name, std::make_unique<Class>())

}  // namespace fleetx::strategies
