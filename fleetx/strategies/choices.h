// What `auto` may try of a strategy. A strategy that wants to be chosen says so in its own file,
// beside its registration; nothing else knows of it:
//
//   std::vector<Choice> choices(const Mesh&) { return {{"recompute", {{"recompute", true}}}}; }
//   FLEETX_CHOICES(recompute, Effect::kSame, choices);
//
// Of each strategy auto takes one choice or none. Combinations that strategies refuse are left out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/ir/attr.h"

namespace fleetx::strategies {

// On what is learned. All but kSame must be allowed by the user (auto_configs.allow).
enum class Effect : uint8_t {
  kSame,      // the numbers are the same, but for the order of sums
  kRounding,  // numbers are rounded more
  kLearning,  // other updates are made
};

// When auto looks at them: sizes that change little come last, for the best that it has found.
enum class Matters : uint8_t { kMuch, kLittle };

struct Choice {
  std::string name;  // "fuse 64 MB"
  // Fields of DistributedStrategy by name: {"recompute", true}, {"amp_configs.dtype", "bfloat16"}.
  std::vector<std::pair<std::string, ir::Attr>> settings;
};

struct Choices {
  std::string strategy;
  Effect effect = Effect::kSame;
  // In a job of this mesh; none: there is nothing to choose.
  std::vector<Choice> (*list)(const Mesh& mesh) = nullptr;
  Matters matters = Matters::kMuch;
};

const std::vector<Choices>& all_choices();  // sorted by strategy

// At static initialisation.
struct RegisterChoices {
  RegisterChoices(std::string strategy, Effect effect, std::vector<Choice> (*list)(const Mesh&),
                  Matters matters = Matters::kMuch);
};

#define FLEETX_CHOICES(name, effect, ...)                                     \
  static const ::fleetx::strategies::RegisterChoices register_choices_##name( \
      #name, ::fleetx::strategies::effect, __VA_ARGS__)

}  // namespace fleetx::strategies
