// An optimizer's rule (optimizers/lib/rule.h) behind the interface of parameter servers.
#pragma once

#include <cmath>
#include <memory>

#include "fleetx/base/simd.h"
#include "fleetx/ops/lib/update_elements.h"
#include "fleetx/ops/update_rule.h"

namespace fleetx::ops {

template <class Rule>
class ServerRule final : public ps::UpdateRule {
 public:
  template <class Options>
  ServerRule(const Options& o, const ir::Op& update, size_t index, const FirstStates& first)
      : rule_(optim::make_rule<Rule>(o, of_parameter(update, "with_decay", index, 1.0) != 0)),
        lr_factor_(static_cast<float>(of_parameter(update, "lr_factors", index, 1.0))),
        decay_{1.0f, static_cast<float>(of_parameter(update, "l1", index, 0.0)),
               static_cast<float>(of_parameter(update, "l2", index, 0.0))},
        text_(text_of_update(update, index)) {
    for (const std::string_view state : Rule::kStates) states_.push_back(first_value(first, state));
    if constexpr (kPowers)
      scalars_ = {first_value(first, "beta1_pow"), first_value(first, "beta2_pow")};
  }

  std::string text() const override { return text_; }
  std::vector<float> states() const override { return states_; }
  std::vector<float> scalars() const override { return scalars_; }

  void update(const Batch& batch) const override {
    optim::StepArgs args{.lr = batch.lr * lr_factor_};
    if constexpr (kPowers) {
      args.beta1_pow = batch.scalars[0];
      args.beta2_pow = batch.scalars[1];
    }
    if constexpr (kNorms) {
      for (size_t i = 0; i < batch.records.size(); ++i) update_by_norm(batch, i, args);
    } else {
      vectorized([decay = decay_, step = rule_.step(args), batch] {
        for (size_t i = 0; i < batch.records.size(); ++i)
          Elements::update(step, decay, at(batch, i), batch.width);
      });
    }
  }

  void advance(std::span<float> scalars) const override {
    if constexpr (kPowers) {
      scalars[0] *= rule_.beta1;
      scalars[1] *= rule_.beta2;
    }
  }

 private:
  using Elements = UpdateElements<Rule>;
  static constexpr size_t kCount = Rule::kStates.size();
  static constexpr bool kPowers = optim::has_powers<Rule>(), kNorms = optim::has_norms<Rule>();

  static typename Elements::Pointers at(const Batch& batch, size_t i) {
    typename Elements::Pointers pointers{batch.records[i], batch.gradients[i], {}};
    for (size_t k = 0; k < kCount; ++k)
      pointers.s[k] = batch.records[i] + static_cast<int64_t>(k + 1) * batch.width;
    return pointers;
  }

  // The norm is that of the record, which must be the whole parameter.
  void update_by_norm(const Batch& batch, size_t i, optim::StepArgs args) const {
    typename Elements::Squares squares;
    vectorized([decay = decay_, measure = rule_.measure(args), pointers = at(batch, i),
                width = batch.width,
                out = &squares] { *out = Elements::measure(measure, decay, pointers, width); });
    args.norm_param = std::sqrt(squares.first);
    args.norm = std::sqrt(squares.second);
    vectorized([decay = decay_, step = rule_.step(args), pointers = at(batch, i),
                width = batch.width] { Elements::update(step, decay, pointers, width); });
  }

  Rule rule_;
  float lr_factor_;
  Decay decay_;
  std::vector<float> states_, scalars_;
  std::string text_;
};

template <class Rule>
ps::UpdateRulePtr make_server_rule(const ir::Op& update, size_t index, const FirstStates& first) {
  const typename Rule::Options o = optim::declared<Rule>().from_op(update.attrs);
  const auto use = [&]<class Formula>(std::type_identity<Formula>) {
    return ps::UpdateRulePtr(std::make_shared<const ServerRule<Formula>>(o, update, index, first));
  };
  if constexpr (requires { Rule::choose(o, use); }) {
    return Rule::choose(o, use);
  } else {
    return use(std::type_identity<Rule>{});
  }
}

}  // namespace fleetx::ops
