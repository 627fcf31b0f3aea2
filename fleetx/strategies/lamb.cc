// lamb: Adam's step of each layer is scaled to the norm of its parameter (You et al., 2020), so
// that large batches learn as small ones do.
//
//   before                                       after
//     [w], [m1], [m2], [b1], [b2] =                [w], [m1], [m2], [b1], [b2] =
//         adam([w], [dw], [m1], [m2], ...)             lamb([w], [dw], [m1], [m2], ...)
//
// beta1, beta2, epsilon, clipping, decay (l1, l2: it adds to that of lamb) and factors on the
// learning rate stay as the user's optimizer has them. AdamW is refused: it has a decay of its own
// that lamb would replace. Communicates nothing. The update reads the parameter and both moments
// once more, for the norms.
#include <algorithm>

#include "fleetx/strategies/replace_updates.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

bool is_end(const std::string& param, const std::string& end) { return param.ends_with(end); }

class Lamb final : public Strategy {
 public:
  std::string_view name() const override { return "lamb"; }
  Traits traits() const override { return {.acts = {{Phase::kUpdates}}}; }
  ir::Attrs options() const override {
    return {{"lamb_weight_decay", 0.01}, {"exclude_from_weight_decay", ir::Strings{}}};
  }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("lamb")) return std::nullopt;
    return ir::Attrs{
        {"lamb_weight_decay", s.get("lamb_configs.lamb_weight_decay")},
        {"exclude_from_weight_decay", s.get("lamb_configs.exclude_from_weight_decay")}};
  }

  void validate(const ir::Program& main, const StrategyContext& context) const override {
    warn_of_unused_exclusions(main, context, "lamb_configs", "end", is_end);
  }

  void on_updates(Programs& programs, const StrategyContext& context) const override {
    const ir::Attrs& o = context.options;
    const auto excluded = o.at("exclude_from_weight_decay").as<ir::Strings>();
    replace_updates(
        programs.main,
        {.strategy = "lamb",
         .from = "adam",
         .to = "lamb",
         .remedy = "use Adam, or switch strategy.lamb off (strategy.lars goes with Momentum)",
         .attrs = {{"weight_decay", o.at("lamb_weight_decay")}},
         .decays = [&](const std::string& param) {
           return std::none_of(excluded.begin(), excluded.end(),
                               [&](const std::string& end) { return is_end(param, end); });
         }});
  }
};

FLEETX_STRATEGY(lamb, Lamb);

}  // namespace
}  // namespace fleetx::strategies
