#include "fleetx/data/formats.h"

#include "fleetx/base/names.h"
#include "fleetx/data/criteo.h"
#include "fleetx/data/libsvm.h"
#include "fleetx/data/multi_slot.h"

namespace fleetx::data {

std::shared_ptr<const LineFormat> make_format(const std::string& name, std::vector<Slot> slots,
                                              int64_t ids) {
  if (name == "multi_slot") return multi_slot_format(std::move(slots));
  if (name == "criteo") return criteo_format(std::move(slots), ids);
  if (name == "libsvm") return libsvm_format(std::move(slots));
  const std::vector<std::string> known{"multi_slot", "criteo", "libsvm"};
  fail(Error::Kind::kInvalidArgument, str("no format '", name, "' of samples; known: ",
                                          join(known, ", "), did_you_mean(name, known)));
}

}  // namespace fleetx::data
