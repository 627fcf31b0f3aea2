// A strategy (amp, recompute, data parallel, ...) is a function from Program to Program; nothing
// else in FleetX knows strategies. One file each in fleetx/strategies/, registered by name. It acts
// in one or more phases of minimize():
//
//   forward strategies -> backward -> gradient strategies -> optimizer -> update strategies
//
//   class Halve final : public Strategy {
//     std::string_view name() const override { return "halve"; }
//     Traits traits() const override {
//       return {.acts = {{Phase::kGradients, {"data_parallel"}}},
//               .conflicts = {{"twice", "both scale the gradients"}}};
//     }
//     void on_gradients(Programs& programs, const StrategyContext& context) const override { ... }
//   };
//   FLEETX_STRATEGY(halve, Halve);
//
// Each phase is deterministic, changes programs through Rewriter only, and neither communicates nor
// looks at a clock: any process can make the program of any rank. A registered strategy has no
// state and is safe to share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/ir/program.h"
#include "fleetx/passes/pass.h"

namespace fleetx::strategies {

enum class Phase : uint8_t {
  kForward,    // backward does not exist yet: casts, splits of tensor parallel and pipeline
  kGradients,  // after backward: averaging, merging, compressing, recomputing
  kUpdates,    // after the optimizer: skipped or sharded updates, parameter servers
};
std::string_view name_of(Phase phase);

// Another strategy, and why it must not or must be there too.
struct Relation {
  std::string strategy;
  std::string reason;
};

// A phase in which a strategy acts. Order within a phase: those it names come first where they act
// in that phase too.
struct Act {
  Phase phase;
  std::vector<std::string> after = {};
};

struct Traits {
  std::vector<Act> acts;
  std::vector<std::string> groups = {};  // of ranks that it communicates in: "dp", "dp+mp"
  std::vector<Relation> conflicts = {};
  std::vector<Relation> needs = {};
  // Users switch it on with DistributedStrategy.NAME and set its options with NAME_configs; both
  // are made from this file. false: the original has a switch for it, or it follows from the job.
  bool own_switch = false;
};

// What the user has set, by name: "recompute", "recompute_configs.checkpoints". An unknown name is
// kInternal: the strategy file is wrong.
class Settings {
 public:
  virtual ~Settings() = default;
  virtual ir::Attr get(std::string_view field) const = 0;
  bool on(std::string_view field) const { return get(field).as<bool>(); }
};

struct StrategyContext {
  Mesh mesh = {};
  std::string dump_dir = "";        // where to write NN.name.txt after each strategy; "": nowhere
  std::set<std::string> skip = {};  // the user's wish to skip passes; naming a strategy is an error
  ir::Attrs options = {};           // of the strategy that is called, complete
};

struct Programs {
  ir::Program& main;
  ir::Program& startup;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string_view name() const = 0;
  virtual Traits traits() const = 0;
  virtual ir::Attrs options() const { return {}; }  // with their defaults
  // The options that the user's settings ask for; nothing where they do not ask for the strategy.
  // Default: the switch of its name, and NAME_configs where the switch is its own. Settings that
  // make no sense here throw.
  virtual std::optional<ir::Attrs> requested(const Settings& settings, const Mesh& mesh) const;
  // Throws kInvalidArgument for options that make no sense or a network that it cannot work on.
  // `main` is the program before any strategy and before backward.
  virtual void validate(const ir::Program& /*main*/, const StrategyContext& /*context*/) const {}
  // Whether it changes anything in a job of this mesh.
  virtual bool acts_in(const Mesh& /*mesh*/) const { return true; }
  // Throws kInvalidArgument for an optimizer that it cannot work with. `main` has its updates.
  virtual void check_optimizer(const ir::Program& /*main*/) const {}

  // Groups of ranks that follow from its options, beside those of its traits.
  virtual std::vector<std::string> more_groups(const StrategyContext& /*context*/) const {
    return {};
  }

  // One for each phase of the traits; those of other phases are never called.
  virtual void on_forward(Programs& programs, const StrategyContext& context) const;
  virtual void on_gradients(Programs& programs, const StrategyContext& context) const;
  virtual void on_updates(Programs& programs, const StrategyContext& context) const;
  // The post-condition of a phase, checked after the verifier: throws where the strategy did not do
  // what it promises.
  virtual void check(Phase /*phase*/, const ir::Program& /*main*/,
                     const StrategyContext& /*context*/) const {}
};

struct Request {
  std::string name;
  ir::Attrs options = {};  // those that differ from the defaults
  // Asked for in a job in which it has nothing to do, as one worker has nobody to send gradients
  // to. Whether it could work is checked all the same: options, conflicts, the optimizer.
  bool idle = false;
};

// The strategies of one job, in order. An unknown name or option, a conflict, an unmet need, a
// group that the mesh does not have or the wish to skip a strategy is kInvalidArgument with the
// reason.
class ResolvedStrategies {
 public:
  ResolvedStrategies(const std::vector<Request>& requested, StrategyContext context);
  ~ResolvedStrategies();

  // Before anything is changed.
  void validate(const ir::Program& main) const;
  // Between the optimizer and the last phase.
  void check_optimizer(const ir::Program& main) const;
  // Those of one phase, one after the other; each result is dumped, verified and checked.
  void apply(Phase phase, Programs programs);
  // All groups of ranks that they communicate in, sorted.
  std::vector<std::string> groups() const;
  const std::vector<passes::Report>& applied() const { return reports_; }
  // What is applied, in its order: a line for each phase of each strategy, with all options in the
  // first of them, and one for what has nothing to do. "" where nothing was asked for.
  std::string to_table() const;

 private:
  struct Call;
  // By name, so that nothing depends on the order in which strategies were asked for.
  using Calls = std::map<std::string, Call, std::less<>>;
  void check_relations() const;
  std::vector<const Call*> in_order(Phase phase) const;

  Calls calls_;
  StrategyContext context_;
  std::vector<passes::Report> reports_;
};

// forward strategies -> backward() -> gradient strategies -> optimize() -> update strategies. On
// any error both programs are as they were.
void minimize(Programs programs, ResolvedStrategies& strategies,
              const std::function<void()>& backward, const std::function<void()>& optimize);

// What the user's settings ask for, of all registered strategies.
std::vector<Request> requests_of(const Settings& settings, const Mesh& mesh);

std::vector<std::string> strategy_names();  // registered ones, sorted
// Those with a switch of their own, with their options.
std::map<std::string, ir::Attrs> strategies_with_switches();

// Registers at static initialisation; two strategies of one name are a bug (kInternal).
struct RegisterStrategy {
  RegisterStrategy(std::string name, std::unique_ptr<Strategy> strategy);
};

#define FLEETX_STRATEGY(name, Class)                                            \
  static const ::fleetx::strategies::RegisterStrategy register_strategy_##name( \
      #name, std::make_unique<Class>())

}  // namespace fleetx::strategies
