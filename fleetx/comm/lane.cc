#include "fleetx/comm/lane.h"

#include "fleetx/base/error.h"
#include "fleetx/comm/glance.h"

namespace fleetx::comm {
namespace {

thread_local bool is_lane = false;

struct Count {
  explicit Count(int& counter) : n(++counter) {}
  ~Count() { --n; }
  int& n;
};

}  // namespace

void Work::wait() const {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::wait_for(Milliseconds time) const {
  if (!state_) return true;
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, time, [&] { return state_->done; })) return false;
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

bool Lane::on_lane() { return is_lane; }

Work Lane::start(std::function<void()> fn) {
  Work work;
  work.state_ = std::make_shared<Work::State>();
  std::scoped_lock lock(mutex_);
  FLEETX_CHECK(!stop_, "a call on a communicator that is being destroyed");
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  tasks_.push_back({std::move(fn), work.state_});
  changed_.notify_all();
  return work;
}

// A direct call comes after all that were started before it: the queue must be empty.
void Lane::take_turn() {
  std::unique_lock lock(mutex_);
  if (busy_ || !tasks_.empty()) {
    const Count one_more(waiting_);
    wait_glancing(changed_, lock, Deadline::max(), [&] { return !busy_ && tasks_.empty(); });
  }
  busy_ = true;
}

void Lane::end_turn() {
  std::scoped_lock lock(mutex_);
  busy_ = false;
  if (waiting_ > 0 || !tasks_.empty()) changed_.notify_all();
}

void Lane::serve() {
  is_lane = true;
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || (!busy_ && !tasks_.empty()); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
    }
    std::exception_ptr error;
    try {
      if (stop_) fail(Error::Kind::kComm, "the communicator was destroyed before this call");
      task.fn();
    } catch (...) {
      error = std::current_exception();
    }
    end_turn();
    std::scoped_lock lock(task.state->mutex);
    task.state->done = true;
    task.state->error = error;
    task.state->changed.notify_all();
  }
}

void Lane::stop() {
  {
    std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace fleetx::comm
