#include "fleetx/models/network.h"

namespace fleetx::models {

LayerNames::LayerNames(ir::Builder& b, const std::string& name, const std::string& kind,
                       const std::string& first) {
  if (!name.empty()) {
    prefix_ = name + ".";
    return;
  }
  for (int n = 1; b.main().find(prefix_ + first + ".w_0") != nullptr; ++n)
    prefix_ = str(kind, "_", n, ".");
}

}  // namespace fleetx::models
