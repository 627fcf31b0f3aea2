#include "fleetx/kernel/servers.h"

#include <mutex>

#include "fleetx/base/error.h"

namespace fleetx::kernel {
namespace {

struct Process {
  std::mutex mutex;
  std::shared_ptr<Servers> servers;
};

Process& process() {
  static Process it;
  return it;
}

thread_local std::shared_ptr<Servers> of_thread;

}  // namespace

std::shared_ptr<Servers> current_servers() {
  if (of_thread) return of_thread;
  const std::scoped_lock lock(process().mutex);
  return process().servers;
}

void set_process_servers(std::shared_ptr<Servers> servers) {
  // The old ones end outside of the lock.
  const std::scoped_lock lock(process().mutex);
  process().servers.swap(servers);
}

std::shared_ptr<Servers> servers_of(std::string_view op) {
  std::shared_ptr<Servers> servers = current_servers();
  check_arg(servers != nullptr, op,
            "this program was made for a job with parameter servers, and this process is connected "
            "to none: call fleet.init and minimize before it runs, and run it before stop_worker");
  return servers;
}

ThreadServers::ThreadServers(std::shared_ptr<Servers> servers) { of_thread = std::move(servers); }
ThreadServers::~ThreadServers() { of_thread.reset(); }

}  // namespace fleetx::kernel
