// lars: Momentum gets a learning rate per layer, from the norms of its parameter and gradient (You
// et al., 2017), so that large batches learn as small ones do.
//
//   before                                          after
//     [w], [v] = momentum([w], [dw], [v], lr)         [w], [v] = lars_momentum([w], [dw], [v], lr)
//
// Momentum, Nesterov's form, clipping, decay (l1, l2: it adds to that of lars) and factors on the
// learning rate stay as the user's optimizer has them. Communicates nothing: gradients are averaged
// already. The update reads parameter and gradient once more, for their norms.
#include <algorithm>

#include "fleetx/strategies/replace_updates.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

bool is_part(const std::string& param, const std::string& part) {
  return param.find(part) != std::string::npos;
}

class Lars final : public Strategy {
 public:
  std::string_view name() const override { return "lars"; }
  Traits traits() const override {
    return {.acts = {{Phase::kUpdates}},
            .conflicts = {{"lamb",
                           "lars is a form of Momentum and lamb one of Adam; use the one that goes "
                           "with the optimizer"}}};
  }
  ir::Attrs options() const override {
    return {{"lars_coeff", 0.001},
            {"lars_weight_decay", 0.0005},
            {"epsilon", 0.0},
            {"exclude_from_weight_decay", ir::Strings{}}};
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("lars")) return std::nullopt;
    ir::Attrs given;
    for (const auto& [option, fallback] : options())
      given.emplace(option, s.get("lars_configs." + option));
    return given;
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    warn_of_unused_exclusions(main, context, "lars_configs", "part", is_part);
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    const ir::Attrs& o = context.options;
    const auto excluded = o.at("exclude_from_weight_decay").as<ir::Strings>();
    replace_updates(
        programs.main,
        {.strategy = "lars",
         .from = "momentum",
         .to = "lars_momentum",
         .remedy = "use Momentum, or switch strategy.lars off (strategy.lamb goes with Adam)",
         .attrs = {{"lars_coeff", o.at("lars_coeff")},
                   {"lars_weight_decay", o.at("lars_weight_decay")},
                   {"epsilon", o.at("epsilon")}},
         .decays = [&](const std::string& param) {
           return std::none_of(excluded.begin(), excluded.end(),
                               [&](const std::string& part) { return is_part(param, part); });
         }});
  }
};

FLEETX_STRATEGY(lars, Lars);

}  // namespace
}  // namespace fleetx::strategies
