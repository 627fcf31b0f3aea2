#include "fleetx/runtime/bind.h"

#include <chrono>

#include "fleetx/comm/groups.h"
#include "fleetx/runtime/shared_state.h"

namespace fleetx::runtime {

class Binder {
 public:
  Binder(PlannedProgram planned, Scope& scope, const BindOptions& options) : scope_(scope) {
    plan_->planned_ = std::move(planned);
    plan_->groups_ = options.groups ? options.groups : std::make_shared<comm::Groups>();
    plan_->memory_ = options.memory ? options.memory : std::make_shared<PlanMemory>();
  }

  std::unique_ptr<Plan> bind() {
    const auto start = std::chrono::steady_clock::now();
    provide_state();
    for (const Step& step : plan_->planned_.steps) step.kernel->bind(*plan_->groups_);
    allocate();
    set_pointers();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    plan_->planned_.phases.push_back({"bind", spent.count()});
    return std::move(plan_);
  }

 private:
  // Variables in the scope, in the layouts of the plan: made, or moved there once. All are checked
  // before the first moves.
  void provide_state() {
    const PlannedProgram& planned = plan_->planned_;
    for (const Value& value : planned.values)
      if (is_home(value)) check(value);
    const std::map<std::string, std::string> sent = sent_state(planned);
    for (const Value& value : planned.values) {
      if (!is_home(value)) continue;
      const auto group = sent.find(value.var);
      provide(value, group == sent.end() ? nullptr : &plan_->groups_->at(group->second));
    }
  }

  bool is_home(const Value& value) const {
    return plan_->planned_.storage(value.storage).region == Region::kScope;
  }

  static bool fits(const Tensor& tensor, const kernel::Desc& desc) {
    return tensor.dtype() == desc.dtype && tensor.shape() == desc.shape;
  }

  void check(const Value& value) const {
    const Storage& storage = plan_->planned_.storage(value.storage);
    const Tensor* tensor = scope_.find(value.var);
    check_arg(tensor != nullptr || storage.needed_by.empty(), storage.needed_by, "'", value.var,
              "' is not in the scope yet: run the startup program first, or load a checkpoint");
    // One that the program makes anew is replaced: a second startup program may have other shapes.
    check_arg(tensor == nullptr || storage.needed_by.empty() || fits(*tensor, value.desc), "'",
              value.var, "' in the scope is ",
              tensor == nullptr ? "" : str(tensor->dtype(), tensor->shape()),
              ", the program declares ", value.desc.dtype, value.desc.shape);
  }

  // `readers`: the group that gets it from here, where there is one.
  void provide(const Value& value, comm::Communicator* readers) {
    const kernel::Desc& desc = value.desc;
    const Tensor* tensor = scope_.find(value.var);
    if (tensor == nullptr || !fits(*tensor, desc)) {
      scope_.replace(value.var, Tensor(desc.dtype, desc.shape, desc.layout));
    } else if (tensor->layout() != desc.layout) {
      scope_.replace(value.var, tensor->to(desc.layout));
    }
    if (readers != nullptr) {
      const Tensor own = *scope_.find(value.var), shared = in_shared_memory(own, *readers);
      if (shared.raw() != own.raw()) scope_.replace(value.var, shared);
    }
    plan_->held_.emplace(value.var, *scope_.find(value.var));
  }

  void allocate() {
    PlanMemory& memory = *plan_->memory_;
    memory.reserve(plan_->planned_.arena_bytes);
    plan_->arena_ = memory.arena();
    for (const PlannedBucket& bucket : plan_->planned_.buckets)
      plan_->bucket_memory_.push_back(
          memory.bucket(plan_->groups_->at(bucket.group), bucket, plan_->bucket_memory_));
    for (const Fetch& fetch : plan_->planned_.fetches) {
      const kernel::Desc& desc = plan_->planned_.value(fetch.value).desc;
      plan_->selected_.push_back(plan_->fetched_.size());
      plan_->selected_names_.push_back(fetch.name);
      plan_->fetched_.emplace_back(desc.dtype, desc.shape);
    }
  }

  void set_pointers() {
    const PlannedProgram& planned = plan_->planned_;
    plan_->feed_uses_.resize(planned.feeds.size());
    plan_->feed_data_.resize(planned.feeds.size(), nullptr);
    std::vector<size_t> firsts, counts;  // of the steps' pointers, whose memory still moves
    for (const Step& step : planned.steps) {
      const size_t first = plan_->pointers_.size();
      for (const int v : step.inputs) add_pointer(planned.storage_of(v));
      for (const int v : step.outputs) add_pointer(planned.storage_of(v));
      for (const int s : step.scratch) {
        if (s == kNoStorage)
          plan_->pointers_.push_back(nullptr);
        else
          add_pointer(planned.storage(s));
      }
      firsts.push_back(first);
      counts.push_back(plan_->pointers_.size() - first);
      if (step.guard != kNoGuard) add_pointer(planned.storage_of(step.guard));
    }
    for (size_t i = 0; i < planned.steps.size(); ++i) {
      const Step& step = planned.steps[i];
      void* const* const at = plan_->pointers_.data() + firsts[i];
      plan_->calls_.push_back(
          {step.kernel.get(), {at, counts[i]}, step.guard != kNoGuard ? at + counts[i] : nullptr});
    }
  }

  void add_pointer(const Storage& storage) {
    if (storage.region == Region::kFeed) {
      const auto feed = static_cast<size_t>(plan_->feed_index(storage.var));
      plan_->feed_uses_[feed].push_back(plan_->pointers_.size());
    }
    if (storage.region == Region::kArena) plan_->arena_uses_.push_back(plan_->pointers_.size());
    plan_->pointers_.push_back(plan_->address_of(storage));
  }

  Scope& scope_;
  std::unique_ptr<Plan> plan_ = std::make_unique<Plan>();
};

std::unique_ptr<Plan> bind(PlannedProgram planned, Scope& scope, const BindOptions& options) {
  return Binder(std::move(planned), scope, options).bind();
}

}  // namespace fleetx::runtime
