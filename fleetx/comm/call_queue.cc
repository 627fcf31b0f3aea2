#include "fleetx/comm/call_queue.h"

#include "fleetx/base/error.h"
#include "fleetx/comm/interruptible_wait.h"

namespace fleetx::comm {
namespace {

thread_local bool is_queue_thread = false;

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

bool CallQueue::on_thread() { return is_queue_thread; }

// A state whose call is done and that no Work refers to.
std::shared_ptr<Work::State> CallQueue::free_state() {
  for (const auto& state : states_) {
    if (state.use_count() > 1) continue;
    const std::scoped_lock lock(state->mutex);
    if (!state->done) continue;
    state->done = false;
    state->error = nullptr;
    return state;
  }
  return states_.emplace_back(std::make_shared<Work::State>());
}

void CallQueue::append(Work::State& state) {
  FLEETX_CHECK(!stop_, "a call on a communicator that is being destroyed");
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  state.next = nullptr;
  (first_ != nullptr ? last_->next : first_) = &state;
  last_ = &state;
  changed_.notify_all();
}

// A blocking call runs after all asynchronous calls before it: the queue must be empty.
void CallQueue::take_turn() {
  std::unique_lock lock(mutex_);
  if (busy_ || first_ != nullptr) {
    const Count one_more(waiting_);
    wait_interruptible(changed_, lock, Deadline::max(),
                       [&] { return !busy_ && first_ == nullptr; });
  }
  busy_ = true;
}

void CallQueue::end_turn() {
  std::scoped_lock lock(mutex_);
  busy_ = false;
  if (waiting_ > 0 || first_ != nullptr) changed_.notify_all();
}

void CallQueue::serve() {
  is_queue_thread = true;
  for (;;) {
    Work::State* state = nullptr;  // kept by states_
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || (!busy_ && first_ != nullptr); });
      if (first_ == nullptr) return;
      state = first_;
      first_ = state->next;
      busy_ = true;
    }
    std::exception_ptr error;
    try {
      if (stop_) fail(Error::Kind::kComm, "the communicator was destroyed before this call");
      state->call(state->function);
    } catch (...) {
      error = std::current_exception();
    }
    end_turn();
    const std::scoped_lock lock(state->mutex);
    state->done = true;
    state->error = error;
    state->changed.notify_all();
  }
}

void CallQueue::stop() {
  {
    std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace fleetx::comm
