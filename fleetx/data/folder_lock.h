// A lock on a folder between processes of this machine. The kernel releases it when its holder
// ends, also by a crash.
#pragma once

#include <functional>
#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::data {

class FolderLock {
 public:
  // Creates the lock file `path` and blocks until the lock is free. Calls `poll` meanwhile, which
  // may throw to cancel.
  explicit FolderLock(const std::string& path, const std::function<void()>& poll = {});

 private:
  Fd file_;
};

}  // namespace fleetx::data
