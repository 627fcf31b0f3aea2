// One process of this machine at a time works in a folder. The kernel gives the lock free when its
// holder ends, however that happens.
#pragma once

#include <functional>
#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::data {

class FolderLock {
 public:
  // Makes the file `path` and waits until nobody else holds it; meanwhile `poll` is called, which
  // may throw to give up.
  explicit FolderLock(const std::string& path, const std::function<void()>& poll = {});

 private:
  Fd file_;
};

}  // namespace fleetx::data
