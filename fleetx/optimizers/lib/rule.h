// An optimizer is one file, fleetx/optimizers/<name>.h: a struct of options and a rule.
//
//   struct FooOptions {                                    what a C++ user writes:
//                                                          optim::Foo({.lr = 0.1, .rho = 0.9})
//     LearningRate lr = 0.001;
//     double rho = 0.95;
//     double l1 = 0, l2 = 0;
//     Clip clip = {};
//   };
//   struct FooRule {
//     using Options = FooOptions;
//     static void declare(Declaration<Options>& d);        name, Python classes, options
//     static constexpr std::array<std::string_view, 1> kStates{"moment"};
//     explicit FooRule(const Options& o);                  made once per parameter
//     Step step(const StepArgs& a) const;                  made once per step: a function
//   };                                                     (float& p, float g, float& state...)
//   FLEETX_OPTIMIZER(Foo)                                  registers all of it, defines optim::Foo
//
// The rule sees one element: g has its scale and decay, a.lr its factor. It must map zeros to
// zeros, because the padding of a blocked layout stays zero. The op is called with lists of
// parameters; lists, layouts and sparse gradients are the business of ops/lib/optimizer.h.
//
// A rule may have more:
//   kPowers = true            states beta1_pow and beta2_pow, f32[1], which start at the options
//                             beta1 and beta2 and are multiplied by them after each step;
//                             members beta1 and beta2
//   kNorms = true             a pass over the whole parameter before the update, dense gradients
//                             only: measure(const StepArgs&) gives a function (float p, float g,
//                             float& state...) that returns the value to take the norm of
//   FooRule(o, bool decays)   an op with a with_decay list: some parameters have no decay
//   choose(o, use)            calls use(std::type_identity<Formula>{}) with the class that has
//                             kStates and step(), where that depends on the options
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <functional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fleetx/optimizers/lib/optimizer_def.h"
#include "fleetx/optimizers/lib/options.h"

namespace fleetx::optim {

// What a rule may use to set up its step.
struct StepArgs {
  float lr;
  float beta1_pow = 0, beta2_pow = 0;  // of rules with kPowers
  double norm_param = 0, norm = 0;  // of rules with kNorms: of the parameter and what it measures
};

template <class Rule>
constexpr bool has_powers() {
  if constexpr (requires { Rule::kPowers; }) return Rule::kPowers;
  return false;
}
template <class Rule>
constexpr bool has_norms() {
  if constexpr (requires { Rule::kNorms; }) return Rule::kNorms;
  return false;
}
template <class Rule, class Options>
constexpr bool has_decay_list() {
  return std::constructible_from<Rule, const Options&, bool>;
}
template <class Rule, class Options>
Rule make_rule(const Options& o, bool decays) {
  if constexpr (has_decay_list<Rule, Options>()) {
    return Rule(o, decays);
  } else {
    return Rule(o);
  }
}

// An OptimizerDef that knows the members of the options.
template <class Options>
class Declaration : public OptimizerDef {
 public:
  // T: double, bool, std::vector<std::string>. The default is that of the struct.
  template <class T>
  void option(T Options::*member, OptionDef o) {
    if (o.python.empty()) o.python = o.name;
    if (o.attr.empty() && o.starts.empty() && !std::is_same_v<T, ir::Strings>) o.attr = o.name;
    o.fallback = Options{}.*member;
    options.push_back(std::move(o));
    members_.push_back({[=](const Options& from) { return ir::Attr(from.*member); },
                        [=](Options& to, const ir::Attr& value) { to.*member = value.as<T>(); }});
  }
  void accept(AcceptedArgument a) { accepted.push_back(std::move(a)); }

  ir::Attrs values(const Options& o) const {
    ir::Attrs out;
    for (size_t i = 0; i < options.size(); ++i) out.emplace(options[i].name, members_[i].get(o));
    return out;
  }

  // The options that an op has as attributes.
  Options from_op(const ir::Attrs& attrs) const {
    Options o;
    for (size_t i = 0; i < options.size(); ++i)
      if (options[i].in_op()) members_[i].set(o, attrs.at(options[i].attr));
    return o;
  }

 private:
  struct Member {
    std::function<ir::Attr(const Options&)> get;
    std::function<void(Options&, const ir::Attr&)> set;
  };
  std::vector<Member> members_;
};

template <class Rule>
const Declaration<typename Rule::Options>& declared() {
  static const auto declaration = [] {
    Declaration<typename Rule::Options> d;
    Rule::declare(d);
    d.lr = std::get<double>(typename Rule::Options{}.lr);
    d.with_decay = has_decay_list<Rule, typename Rule::Options>();
    d.dense_only = has_norms<Rule>();
    complete(d, {Rule::kStates.begin(), Rule::kStates.end()}, has_powers<Rule>());
    return d;
  }();
  return declaration;
}

template <class Rule>
class Typed;  // the optimizer of a rule: optim/optimizer.h

}  // namespace fleetx::optim

// Users include optim/optimizer.h and see the class. For each file of optimizers/ the build makes
// one source that also registers the op (ops/lib/register_optimizer.h).
#ifndef FLEETX_REGISTER_OPTIMIZER
#define FLEETX_REGISTER_OPTIMIZER(Name)
#endif
#define FLEETX_OPTIMIZER(Name)                 \
  namespace fleetx::optim {                    \
  using Name = Typed<Name##Rule>; /* NOLINT */ \
  }                                            \
  FLEETX_REGISTER_OPTIMIZER(Name)              \
  static_assert(true, "ends with a semicolon")
