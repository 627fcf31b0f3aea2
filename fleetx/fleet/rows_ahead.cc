#include "fleetx/fleet/rows_ahead.h"

#include <pthread.h>

#include <utility>

#include "fleetx/base/error.h"

namespace fleetx::fleet {

RowsAhead::RowsAhead() : thread_([this] { work(); }) {
  pthread_setname_np(thread_.native_handle(), "rows_ahead");
}

RowsAhead::~RowsAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RowsAhead::tell(std::vector<Lookup> lookups) {
  {
    const std::lock_guard lock(mutex_);
    told_ = std::move(lookups);
  }
  changed_.notify_all();
}

void RowsAhead::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return told_.empty() && !busy_; });
}

void RowsAhead::work() {
  std::vector<float> rows;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !told_.empty(); });
    if (stop_) return;
    const std::vector<Lookup> lookups = std::exchange(told_, {});
    busy_ = true;
    lock.unlock();
    for (const Lookup& l : lookups) {
      rows.resize(l.ids.size() * static_cast<size_t>(l.table->dim()));
      try {
        l.table->pull(l.ids, rows.data());
      } catch (const Error&) {
        // No room: the batch itself will say so.
      }
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace fleetx::fleet
