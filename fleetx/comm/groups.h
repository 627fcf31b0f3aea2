// The groups of ranks that programs name: an op says group="dp", and the executor that runs it
// finds the Communicator here.
//
//   auto groups = std::make_shared<Groups>();
//   groups->add("dp", communicator);
//   set_process_groups(groups);               // or for one executor: its options' plan.groups
//
// Filled once, then only read; safe to share.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

class Groups {
 public:
  void add(const std::string& name, std::shared_ptr<Communicator> group);
  Communicator* find(std::string_view name) const;  // null: there is none
  // Unknown: kInvalidArgument that begins with `where` and says how groups come to be.
  Communicator& at(std::string_view name, std::string_view where = "") const;

 private:
  std::map<std::string, std::shared_ptr<Communicator>, std::less<>> groups_;
};

// Those of this process. fleet::init sets them; before it there are none.
std::shared_ptr<const Groups> process_groups();
void set_process_groups(std::shared_ptr<const Groups> groups);

}  // namespace fleetx::comm
