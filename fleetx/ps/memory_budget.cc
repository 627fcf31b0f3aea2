#include "fleetx/ps/memory_budget.h"

#include <algorithm>
#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::ps {

int64_t MemoryBudget::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

MemoryBudget::Share::Share(MemoryBudget& budget, int64_t floor) : budget_(&budget), floor_(floor) {
  const std::scoped_lock lock(budget.mutex_);
  budget.common_ -= floor;
  FLEETX_CHECK(budget.common_ >= 0, "floors of more than ", budget.bytes_, " bytes");
}

MemoryBudget::Share::~Share() {
  if (budget_ == nullptr) return;
  give_back(used_);
  const std::scoped_lock lock(budget_->mutex_);
  budget_->common_ += floor_;
}

MemoryBudget::Share::Share(Share&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      floor_(std::exchange(other.floor_, 0)),
      used_(std::exchange(other.used_, 0)) {}

bool MemoryBudget::Share::take(int64_t bytes) {
  if (budget_ != nullptr) {
    const auto beyond = [&](int64_t used) { return std::max<int64_t>(0, used - floor_); };
    const int64_t more = beyond(used_ + bytes) - beyond(used_);
    const std::scoped_lock lock(budget_->mutex_);
    if (more > budget_->common_) return false;
    budget_->common_ -= more;
    budget_->used_ += bytes;
  }
  used_ += bytes;
  return true;
}

void MemoryBudget::Share::give_back(int64_t bytes) { FLEETX_CHECK(take(-bytes)); }

}  // namespace fleetx::ps
