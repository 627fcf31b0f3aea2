#include "fleetx/fleet/join.h"

#include "fleetx/base/error.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/strategies/data_parallel.h"

namespace fleetx::fleet {

Join::Join(runtime::Scope& scope) : Join(scope, workers()) {}

Join::Join(runtime::Scope& scope, comm::Communicator& workers) : scope_(scope), workers_(workers) {
  check_arg(workers_.size() == 1 || scope_.has(strategies::kWeightVar),
            "join: the program has not been made for several workers: use "
            "fleet::distributed_optimizer and run the startup program first");
}

Join::~Join() { set_weight(1); }

bool Join::step(bool have_batch) {
  check_arg(have_batch || began_, "join: worker ", workers_.rank(),
            " has no data at all; each needs one batch to take part with");
  began_ = true;
  int32_t with_data = have_batch ? 1 : 0;
  workers_.all_reduce(&with_data, 1, i32);
  if (with_data == 0) return false;
  set_weight(have_batch ? static_cast<float>(workers_.size()) / static_cast<float>(with_data) : 0);
  return true;
}

void Join::set_weight(float weight) {
  if (weight == weight_) return;
  weight_ = weight;
  Tensor value = scope_.get(strategies::kWeightVar);
  value.data<float>()[0] = weight;
  scope_.set(std::string(strategies::kWeightVar), value);
}

}  // namespace fleetx::fleet
