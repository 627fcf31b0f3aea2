// How a server changes values by gradients. `fleet/` binds this interface to the optimizers; the
// tables know no formula. One rule serves dense blocks and sparse rows alike, because both are
// records:
//
//   record = value[width] | state 0 [width] | state 1 [width] | ...
//
// A dense block is one record as wide as the block, a sparse row is a record as wide as the table's
// dimension. Besides the states of elements a rule may have scalars that advance once a step (the
// powers of beta of adam): one set per dense block and one per sparse table of a server. A rule is
// immutable and used by several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fleetx::ps {

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  // The rule with its constants, "adam beta1=0.9 beta2=0.999 epsilon=1e-08": all processes of a job
  // must have the same.
  virtual std::string text() const = 0;
  // Initial values: of the states of each element, and of the scalars.
  virtual std::vector<float> states() const { return {}; }
  virtual std::vector<float> scalars() const { return {}; }

  struct Batch {
    int64_t width = 0;
    float lr = 0;
    std::span<const float> scalars{};
    std::span<float* const> records{};  // each (1 + states) * width values
    std::span<const float* const>
        gradients{};  // of each record, `width` values; never part of a record
  };
  // No record is in a batch twice. Must not throw.
  virtual void update(const Batch& batch) const = 0;
  // After all records of a step.
  virtual void advance(std::span<float> /*scalars*/) const {}
};

using UpdateRulePtr = std::shared_ptr<const UpdateRule>;

// value += gradient, whatever the learning rate: what geo's workers push are differences.
UpdateRulePtr add_rule();

}  // namespace fleetx::ps
