#include "fleetx/comm/groups.h"

#include <mutex>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx::comm {
namespace {

std::mutex mutex;
std::shared_ptr<const Groups> current = std::make_shared<Groups>();

}  // namespace

void Groups::add(const std::string& name, std::shared_ptr<Communicator> group) {
  FLEETX_CHECK(group != nullptr, "group '", name, "'");
  FLEETX_CHECK(groups_.emplace(name, std::move(group)).second, "two groups are named '", name, "'");
}

Communicator* Groups::find(std::string_view name) const {
  const auto it = groups_.find(name);
  return it == groups_.end() ? nullptr : it->second.get();
}

Communicator& Groups::at(std::string_view name, std::string_view where) const {
  if (Communicator* found = find(name)) return *found;
  std::vector<std::string> known;
  for (const auto& [other, group] : groups_) known.push_back(other);
  fail(Error::Kind::kInvalidArgument,
       str(where, "the program computes with the group of workers '", name,
           "', and this process is in ",
           known.empty() ? "none: call fleet::init first" : "these: " + join(known, ", ")));
}

std::shared_ptr<const Groups> process_groups() {
  const std::scoped_lock lock(mutex);
  return current;
}

void set_process_groups(std::shared_ptr<const Groups> groups) {
  FLEETX_CHECK(groups != nullptr);
  const std::scoped_lock lock(mutex);
  current = std::move(groups);
}

}  // namespace fleetx::comm
