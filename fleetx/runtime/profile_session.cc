#include "fleetx/runtime/profile_session.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "fleetx/runtime/trace.h"

namespace fleetx::runtime::profile_session {
namespace {

std::atomic<bool> is_active = false;
std::mutex mutex;
Profile collected;

}  // namespace

bool active() { return is_active.load(std::memory_order_relaxed); }

void start() {
  const std::scoped_lock lock(mutex);
  collected = {};
  trace::start();
  is_active = true;
}

void reset() {
  if (active()) start();
}

void add(const Step& step, double seconds) {
  const std::scoped_lock lock(mutex);
  collected.add(step, seconds);
}

void add(const Profile::CallRow& call) {
  const std::scoped_lock lock(mutex);
  collected.add(call);
}

Profile stop(const std::string& trace_file) {
  const std::scoped_lock lock(mutex);
  is_active = false;
  trace::stop(trace_file);
  return std::exchange(collected, {});
}

}  // namespace fleetx::runtime::profile_session
