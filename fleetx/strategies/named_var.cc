#include "fleetx/strategies/named_var.h"

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx::strategies {

const ir::VarInfo& named_var(const ir::Program& main, const std::string& name,
                             std::string_view setting, std::string_view remedy) {
  if (const ir::VarInfo* found = main.find(name)) return *found;
  std::vector<std::string> known;
  for (const ir::VarInfo* v : main.vars()) known.push_back(v->name);
  fail(Error::Kind::kInvalidArgument,
       str(setting, " has '", name, "', but the program has no variable of that name",
           did_you_mean(name, known), "; ", remedy));
}

}  // namespace fleetx::strategies
