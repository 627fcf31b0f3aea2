#include "fleetx/comm/store_group.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"
#include "fleetx/comm/timeouts.h"

namespace fleetx::comm {
namespace {

class StoreGroup final : public Communicator {
 public:
  StoreGroup(std::shared_ptr<StoreClient> store, std::string name, int rank,
             std::vector<Member> members)
      : Communicator(rank, std::move(members), nullptr, timeout_or_default({})),
        store_(std::move(store)),
        name_(std::move(name)) {}
  ~StoreGroup() override { stop_queue(); }

  std::string_view backend() const override { return "store"; }

 private:
  // What each member gives, one after the other: `bytes` of each.
  std::vector<char> gather(const void* own, size_t bytes, Deadline deadline) {
    const auto parts =
        store_->gather(name_, rank(), size(), std::string(static_cast<const char*>(own), bytes),
                       Milliseconds(std::max(1, left_ms(deadline))));
    std::vector<char> all(bytes * parts.size());
    for (size_t r = 0; r < parts.size(); ++r) {
      check_arg(parts[r].size() == bytes, "group '", name_, "': rank ", r, " gives ",
                parts[r].size(), " bytes and rank ", rank(), " gives ", bytes);
      std::copy_n(parts[r].data(), bytes, all.data() + r * bytes);
    }
    return all;
  }

  void perform(const Call& call, Deadline deadline) override {
    const size_t bytes = static_cast<size_t>(call.count) * size_of(call.dtype);
    if (call.kind == CallKind::kBarrier) {
      gather(nullptr, 0, deadline);
      return;
    }
    const bool known = call.kind == CallKind::kAllReduce || call.kind == CallKind::kAllGather ||
                       call.kind == CallKind::kBroadcast;
    if (!known)
      fail(Error::Kind::kUnsupported,
           str(to_string(call), ": not in a group of servers, which has all_reduce, all_gather, ",
               "broadcast and barrier"));
    const std::vector<char> all = gather(call.in, bytes, deadline);
    if (bytes == 0) return;
    if (call.kind == CallKind::kAllGather) std::memcpy(call.out, all.data(), all.size());
    if (call.kind == CallKind::kBroadcast)
      std::memcpy(call.out, all.data() + static_cast<size_t>(call.peer) * bytes, bytes);
    if (call.kind != CallKind::kAllReduce) return;
    std::vector<const void*> sources;
    for (size_t at = 0; at < all.size(); at += bytes) sources.push_back(all.data() + at);
    void* const out = call.out;
    reduce_vectors(call.dtype, call.op, sources, {&out, 1}, call.count, size());
  }

  std::unique_ptr<Communicator> make_group(const Subgroup&) override {
    fail(Error::Kind::kUnsupported, str("group '", name_, "': it has no groups of its own"));
  }

  const std::shared_ptr<StoreClient> store_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<Communicator> make_store_group(std::shared_ptr<StoreClient> store,
                                               const std::string& name, int rank, int size) {
  check_arg(rank >= 0 && rank < size, "group '", name, "': rank ", rank, " of ", size);
  std::vector<Member> members;
  for (int r = 0; r < size; ++r) members.push_back({.rank = r, .host = {}, .pid = 0});
  return std::make_unique<StoreGroup>(std::move(store), "group/" + name, rank, std::move(members));
}

}  // namespace fleetx::comm
