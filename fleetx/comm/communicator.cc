#include "fleetx/comm/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/comm/interruptible_wait.h"

namespace fleetx::comm {
namespace {

int64_t ns_of(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void add_to(CallRecord& record, Clock::time_point begin, const Traffic& before,
            const Traffic& after) {
  if (record.begin_ns == 0) record.begin_ns = ns_of(begin);
  record.end_ns = ns_of(Clock::now());
  record.traffic.bytes_sent += after.bytes_sent - before.bytes_sent;
  record.traffic.bytes_received += after.bytes_received - before.bytes_received;
  record.traffic.seconds += after.seconds - before.seconds;
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  constexpr std::string_view kNames[] = {"sum", "prod", "min", "max", "average"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view name_of(CallKind kind) {
  constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather",
                                         "broadcast",  "reduce",         "all_to_all",
                                         "barrier",    "send",           "recv"};
  return kNames[static_cast<size_t>(kind)];
}

Call Call::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op) {
  return {CallKind::kAllReduce, data, data, count, dtype, op};
}
Call Call::reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) {
  return {CallKind::kReduceScatter, in, out, count, dtype, op};
}
Call Call::all_gather(const void* in, void* out, int64_t count, DType dtype) {
  return {CallKind::kAllGather, in, out, count, dtype};
}
Call Call::broadcast(void* data, int64_t count, DType dtype, int root) {
  return {CallKind::kBroadcast, data, data, count, dtype, ReduceOp::kSum, root};
}
Call Call::reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root) {
  return {CallKind::kReduce, in, out, count, dtype, op, root};
}
Call Call::all_to_all(const void* in, void* out, int64_t count, DType dtype) {
  return {CallKind::kAllToAll, in, out, count, dtype};
}
Call Call::barrier() { return {}; }
Call Call::send(const void* data, int64_t count, DType dtype, int to, int tag) {
  return {CallKind::kSend, data, nullptr, count, dtype, ReduceOp::kSum, to, tag};
}
Call Call::recv(void* data, int64_t count, DType dtype, int from, int tag) {
  return {CallKind::kRecv, nullptr, data, count, dtype, ReduceOp::kSum, from, tag};
}
Call Call::within(Milliseconds time) const {
  Call call = *this;
  call.timeout = time;
  return call;
}
Call Call::recorded(CallRecord* by) const {
  Call call = *this;
  call.record = by;
  return call;
}
Call Call::repeated(int64_t (*number)(const int64_t*), const int64_t* about_what) const {
  Call call = *this;
  call.times = number;
  call.about = about_what;
  return call;
}

std::string to_string(const Call& c) {
  std::string text(name_of(c.kind));
  if (c.kind == CallKind::kBarrier) return text;
  text += str(" of ", c.count, " ", name_of(c.dtype));
  switch (c.kind) {
    case CallKind::kAllReduce:
    case CallKind::kReduceScatter: return text + str(" (", name_of(c.op), ")");
    case CallKind::kReduce: return text + str(" (", name_of(c.op), ", root ", c.peer, ")");
    case CallKind::kBroadcast: return text + str(" (root ", c.peer, ")");
    case CallKind::kSend: return text + str(" (to ", c.peer, ", tag ", c.tag, ")");
    case CallKind::kRecv: return text + str(" (from ", c.peer, ", tag ", c.tag, ")");
    default: return text;
  }
}

Communicator::Communicator(int rank, std::vector<Member> members,
                           std::shared_ptr<StoreClient> store, Milliseconds timeout)
    : rank_(rank), members_(std::move(members)), store_(std::move(store)), timeout_(timeout) {
  FLEETX_CHECK(rank_ >= 0 && rank_ < size(), "rank ", rank_, " of ", size());
}

Communicator::~Communicator() = default;

void Communicator::check(const Call& c) const {
  check_arg(c.count >= 0, name_of(c.kind), ": count ", c.count, " is negative");
  check_arg(c.dtype != DType::kBool, name_of(c.kind), ": dtype bool; use u8");
  check_arg(c.peer >= 0 && c.peer < size(), name_of(c.kind), ": rank ", c.peer, " of a group of ",
            size());
  check_arg(c.tag >= 0 && c.tag < (1 << 28), name_of(c.kind), ": tag ", c.tag,
            "; expected 0 to 2^28 - 1");
  const bool message = c.kind == CallKind::kSend || c.kind == CallKind::kRecv;
  check_arg(!message || c.peer != rank_, name_of(c.kind), ": rank ", rank_,
            " sends a message to itself");
  const bool rooted = c.kind == CallKind::kReduce;
  const bool reads = c.kind != CallKind::kRecv && c.kind != CallKind::kBarrier && c.count > 0;
  const bool writes = c.kind != CallKind::kSend && c.kind != CallKind::kBarrier && c.count > 0 &&
                      (!rooted || c.peer == rank_);
  check_arg((!reads || c.in != nullptr) && (!writes || c.out != nullptr), name_of(c.kind),
            ": memory is null");
}

// An exception other than Error is an interrupt by the user. It is published at once, so that the
// other ranks do not wait for this one.
template <class Fn>
void Communicator::publish_interrupts(const Fn& fn) {
  try {
    fn();
  } catch (const Error&) {
    throw;
  } catch (...) {
    if (store_) store_->abort(interrupted());
    throw;
  }
}

void Communicator::wait_for(const Work& work) {
  if (!interruptible()) return work.wait();
  publish_interrupts([&] {
    while (!work.wait_for(kInterruptPeriod)) check_interrupt();
  });
}

void Communicator::run(const Call& call) {
  check(call);
  if (can_be_interrupted() || !interruptible())
    return publish_interrupts([&] { queue_.run([&] { execute(call, next_number_++, step_); }); });
  const Work work = start(call);
  try {
    wait_for(work);
  } catch (...) {
    settle(work);  // the caller owns the memory of the call
    throw;
  }
}

Work Communicator::start(const Call& call) {
  check(call);
  return queue_.start([this, call, step = step_.load()] { execute(call, next_number_++, step); });
}

int64_t Communicator::post(const Call& call) {
  const std::scoped_lock lock(posted_mutex_);
  posted_.emplace_back(next_posted_, start(call));
  return next_posted_++;
}

void Communicator::await(int64_t number) {
  Work work;
  {
    const std::scoped_lock lock(posted_mutex_);
    const auto it = std::find_if(posted_.begin(), posted_.end(),
                                 [&](const auto& posted) { return posted.first == number; });
    FLEETX_CHECK(it != posted_.end(), "call ", number, " was not posted, or is awaited already");
    work = it->second;
    posted_.erase(it);
  }
  wait_for(work);
}

void Communicator::settle(const Work& work) noexcept {
  try {
    work.wait();
  } catch (const std::exception&) {
    // The caller has an error of its own, and later calls on the group repeat this one.
  }
}

void Communicator::settle() noexcept {
  std::vector<std::pair<int64_t, Work>> left;
  {
    const std::scoped_lock lock(posted_mutex_);
    left.swap(posted_);
  }
  for (const auto& [number, work] : left) settle(work);
}

void Communicator::execute(const Call& posted, int64_t number, int64_t step) {
  Call call = posted;
  if (call.times != nullptr) call.count *= call.times(call.about);
  if (broken_)
    fail(Error::Kind::kComm, str(to_string(call), " on rank ", rank_,
                                 ": this group is broken and must be rebuilt: ", *broken_));
  const auto begin = Clock::now();
  const Milliseconds timeout = call.timeout > Milliseconds::zero() ? call.timeout : timeout_;
  // Leaves the store time to find the rank that hangs, so that the error comes by the deadline.
  const Milliseconds reserve = store_ ? std::min(timeout / 4, Milliseconds(500)) : Milliseconds(0);
  try {
    throw_if_store_failed();  // a late rank must not start a call that its peers have given up
    const Traffic before = call.record != nullptr ? traffic() : Traffic{};
    perform(call, begin + timeout - reserve);
    if (call.record != nullptr) add_to(*call.record, begin, before, traffic());
  } catch (const PeerFailure& peer) {
    fail_call(peer, call, number, step, begin);
  }
}

void Communicator::fail_call(const PeerFailure& peer, const Call& call, int64_t number,
                             int64_t step, Clock::time_point begin) {
  Failure failure = peer.failure;
  if (store_) {
    if (const auto known = store_->failure()) {
      failure = *known;
    } else if (failure.hangs) {
      failure = store_->suspect(failure);
    } else {
      store_->abort(failure);
    }
  }
  const std::string message =
      str(to_string(call), ", call #", number, step >= 0 ? str(" in step ", step) : "",
          ", on rank ", members_[static_cast<size_t>(rank_)].rank, " (host ",
          members_[static_cast<size_t>(rank_)].host, ", backend ", backend(),
          "): ", to_string(failure), "; after ", seconds_since(begin), " s");
  broken_ = message;
  fail(failure.hangs ? Error::Kind::kTimeout : Error::Kind::kComm, message);
}

void Communicator::fail_gone(int member, const std::string& what) const {
  const Member& m = members_[static_cast<size_t>(member)];
  throw PeerFailure{{m.rank, m.host, m.pid, what, false}};
}

void Communicator::fail_hangs(int member, const std::string& what) const {
  const Member& m = members_[static_cast<size_t>(member)];
  throw PeerFailure{{m.rank, m.host, m.pid, what, true}};
}

Failure Communicator::interrupted() const {
  const Member& m = members_[static_cast<size_t>(rank_)];
  return {m.rank, m.host, m.pid, "was interrupted", false};
}

void Communicator::throw_if_store_failed() const {
  if (store_ && store_->failed()) throw PeerFailure{*store_->failure()};
}

void Communicator::all_reduce(void* data, int64_t count, DType dtype, ReduceOp op) {
  run(Call::all_reduce(data, count, dtype, op));
}
void Communicator::reduce_scatter(const void* in, void* out, int64_t count, DType dtype,
                                  ReduceOp op) {
  run(Call::reduce_scatter(in, out, count, dtype, op));
}
void Communicator::all_gather(const void* in, void* out, int64_t count, DType dtype) {
  run(Call::all_gather(in, out, count, dtype));
}
void Communicator::broadcast(void* data, int64_t count, DType dtype, int root) {
  run(Call::broadcast(data, count, dtype, root));
}
void Communicator::reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                          int root) {
  run(Call::reduce(in, out, count, dtype, op, root));
}
void Communicator::all_to_all(const void* in, void* out, int64_t count, DType dtype) {
  run(Call::all_to_all(in, out, count, dtype));
}
void Communicator::send(const void* data, int64_t count, DType dtype, int to, int tag) {
  run(Call::send(data, count, dtype, to, tag));
}
void Communicator::recv(void* data, int64_t count, DType dtype, int from, int tag) {
  run(Call::recv(data, count, dtype, from, tag));
}
void Communicator::barrier() { run(Call::barrier()); }

std::unique_ptr<Communicator> Communicator::group(const std::vector<int>& ranks) {
  Subgroup subgroup{.ranks = ranks, .members = {}, .own = -1, .name = {}};
  std::vector<std::string> names;
  for (const int r : ranks) {
    check_arg(r >= 0 && r < size(), "group: rank ", r, " of a group of ", size());
    check_arg(std::count(ranks.begin(), ranks.end(), r) == 1, "group: rank ", r, " twice");
    if (r == rank_) subgroup.own = static_cast<int>(subgroup.members.size());
    subgroup.members.push_back(members_[static_cast<size_t>(r)]);
    names.push_back(std::to_string(subgroup.members.back().rank));
  }
  check_arg(subgroup.own >= 0, "group: rank ", rank_, " is not in the group that it makes");
  const std::string name = join(names, "-");
  std::unique_ptr<Communicator> made;
  queue_.run([&] {  // after the calls in flight: peers may still be in them
    int times = 0;
    for (auto& [known, count] : groups_made_)
      if (known == name) times = ++count;
    if (times == 0) groups_made_.emplace_back(name, 0);
    subgroup.name = str(name, "#", times);
    made = make_group(subgroup);
  });
  return made;
}

std::unique_ptr<Communicator> Communicator::split(int color) {
  std::vector<int32_t> colors(static_cast<size_t>(size()));
  const int32_t mine = color;
  all_gather(&mine, colors.data(), 1, DType::kI32);
  if (color < 0) return nullptr;
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (colors[static_cast<size_t>(r)] == color) ranks.push_back(r);
  return group(ranks);
}

std::shared_ptr<void> Communicator::allocate(size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return {memory, &std::free};
}

}  // namespace fleetx::comm
