#include "fleetx/data/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"

namespace fleetx::data {

FolderLock::FolderLock(const std::string& path, const std::function<void()>& poll)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const int error = errno;
  check_arg(static_cast<bool>(file_), "cannot write ", path, ": ",
            std::generic_category().message(error));
  bool told = false;
  while (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!told) log::info("data", "another process is at work there; waiting for ", path);
    told = true;
    if (poll) poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace fleetx::data
