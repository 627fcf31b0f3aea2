#include "fleetx/comm/hierarchical.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {

// Reductions keep the order of the ranks. The first rank of a host (its leader) receives the sum of
// all ranks before it from the previous host and adds its own vector; the host adds the rest; the
// last host sends the result back. This is pipelined in chunks, so that all links are busy. It
// needs hosts with consecutive ranks; otherwise the flat group does the reduction.
class Hierarchical final : public Communicator {
 public:
  Hierarchical(int rank, std::vector<int> host_of, std::unique_ptr<Communicator> host,
               std::unique_ptr<Communicator> flat, std::unique_ptr<Communicator> leaders,
               std::shared_ptr<StoreClient> store, Milliseconds timeout)
      : Communicator(rank, flat->members(), std::move(store), timeout),
        host_of_(std::move(host_of)),
        place_(host_of_.size()),
        host_(std::move(host)),
        flat_(std::move(flat)),
        leaders_(std::move(leaders)) {
    std::vector<int> seen;
    for (size_t r = 0; r < host_of_.size(); ++r) {
      const auto h = static_cast<size_t>(host_of_[r]);
      if (h >= seen.size()) seen.resize(h + 1);
      place_[r] = seen[h]++;
    }
    consecutive_ = std::is_sorted(host_of_.begin(), host_of_.end());
  }
  ~Hierarchical() override { stop_queue(); }

  std::string_view backend() const override { return "hierarchical"; }
  std::shared_ptr<void> allocate(size_t bytes) override { return host_->allocate(bytes); }

 private:
  static constexpr size_t kChunkBytes = size_t{4} << 20;
  static constexpr int kUp = 1 << 28, kDown = kUp + 1;  // above the tags of users

  bool leads() const { return host_->rank() == 0; }

  void perform(const Call& c, Deadline deadline) override {
    switch (c.kind) {
      case CallKind::kAllReduce:
        if (consecutive_) return all_reduce(c, deadline);
        break;
      case CallKind::kBroadcast: return broadcast(c, deadline);
      case CallKind::kBarrier: return barrier(deadline);
      case CallKind::kSend:
      case CallKind::kRecv:
        if (host_of_[static_cast<size_t>(c.peer)] == host_of_[static_cast<size_t>(rank())]) {
          Call inside = c;
          inside.peer = place_[static_cast<size_t>(c.peer)];
          return host_->perform(inside, deadline);
        }
        break;
      default: break;
    }
    flat_->perform(c, deadline);
  }

  // Sums of f16, bf16 and u8 are sent in the wider type, so that they are rounded once.
  void all_reduce(const Call& c, Deadline deadline) {
    const DType wide = sum_type(c.dtype);
    const auto chunk = static_cast<int64_t>(kChunkBytes / size_of(wide));
    std::vector<char> converted;
    if (wide != c.dtype) {
      converted.resize(static_cast<size_t>(c.count) * size_of(wide));
      convert(c.dtype, c.in, wide, converted.data(), c.count);
    }
    char* const data = wide == c.dtype ? static_cast<char*>(c.out) : converted.data();
    const auto each_chunk = [&](const auto& fn) {
      for (int64_t begin = 0; begin < c.count; begin += chunk)
        fn(data + static_cast<size_t>(begin) * size_of(wide), std::min(chunk, c.count - begin));
    };
    each_chunk([&](char* at, int64_t count) { sum_up(c, at, count, wide, deadline); });
    each_chunk([&](char* at, int64_t count) {
      const bool last = leads() && leaders_->rank() == leaders_->size() - 1;
      if (leads() && !last) take_result(at, count, wide, deadline);
      host_->perform(Call::broadcast(at, count, wide, 0), deadline);
    });
    if (wide != c.dtype) convert(wide, data, c.dtype, c.out, c.count);
  }

  // Adds this host's vectors of a chunk to the sum of the hosts before.
  void sum_up(const Call& c, char* at, int64_t count, DType wide, Deadline deadline) {
    const ReduceOp op = c.op == ReduceOp::kAverage ? ReduceOp::kSum : c.op;
    void* const out[] = {at};
    if (leads() && leaders_->rank() > 0) {
      before_.resize(static_cast<size_t>(count) * size_of(wide));
      leaders_->perform(Call::recv(before_.data(), count, wide, leaders_->rank() - 1, kUp),
                        deadline);
      const void* const sources[] = {before_.data(), at};
      reduce_vectors(wide, op, sources, out, count, 1);
    }
    host_->perform(Call::reduce(at, at, count, wide, op, 0), deadline);
    if (!leads()) return;
    if (leaders_->rank() < leaders_->size() - 1) {
      leaders_->perform(Call::send(at, count, wide, leaders_->rank() + 1, kUp), deadline);
      return;
    }
    if (c.op == ReduceOp::kAverage) {
      const void* const sources[] = {at};
      reduce_vectors(wide, ReduceOp::kAverage, sources, out, count, size());
    }
    if (leaders_->size() > 1)
      leaders_->perform(Call::send(at, count, wide, leaders_->rank() - 1, kDown), deadline);
  }

  void take_result(char* at, int64_t count, DType wide, Deadline deadline) {
    leaders_->perform(Call::recv(at, count, wide, leaders_->rank() + 1, kDown), deadline);
    if (leaders_->rank() > 0)
      leaders_->perform(Call::send(at, count, wide, leaders_->rank() - 1, kDown), deadline);
  }

  void broadcast(const Call& c, Deadline deadline) {
    const int root_host = host_of_[static_cast<size_t>(c.peer)];
    const bool here = host_of_[static_cast<size_t>(rank())] == root_host;
    if (here)
      host_->perform(Call::broadcast(c.out, c.count, c.dtype, place_[static_cast<size_t>(c.peer)]),
                     deadline);
    if (leads()) leaders_->perform(Call::broadcast(c.out, c.count, c.dtype, root_host), deadline);
    if (!here) host_->perform(Call::broadcast(c.out, c.count, c.dtype, 0), deadline);
  }

  void barrier(Deadline deadline) {
    host_->perform(Call::barrier(), deadline);
    if (leads()) leaders_->perform(Call::barrier(), deadline);
    host_->perform(Call::barrier(), deadline);
  }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    auto flat = flat_->group(subgroup.ranks);
    std::vector<int> hosts, on_host, host_of;  // hosts in the order of their first rank
    for (const int r : subgroup.ranks) {
      const int h = host_of_[static_cast<size_t>(r)];
      auto at = std::find(hosts.begin(), hosts.end(), h);
      if (at == hosts.end()) at = hosts.insert(hosts.end(), h);
      host_of.push_back(static_cast<int>(at - hosts.begin()));
      if (h == host_of_[static_cast<size_t>(rank())])
        on_host.push_back(place_[static_cast<size_t>(r)]);
    }
    auto host = host_->group(on_host);
    if (hosts.size() == 1) return host;
    return make_hierarchical(subgroup.own, host_of, std::move(host), std::move(flat), store(),
                             timeout());
  }

  const std::vector<int> host_of_;
  std::vector<int> place_;  // rank of each rank inside its host
  bool consecutive_ = false;
  std::unique_ptr<Communicator> host_, flat_, leaders_;  // leaders_: only on a leader
  std::vector<char> before_;
};

std::unique_ptr<Communicator> make_hierarchical(int rank, const std::vector<int>& host_of,
                                                std::unique_ptr<Communicator> host,
                                                std::unique_ptr<Communicator> flat,
                                                std::shared_ptr<StoreClient> store,
                                                Milliseconds timeout) {
  std::vector<int> first;
  for (size_t r = 0; r < host_of.size(); ++r)
    if (host_of[r] == static_cast<int>(first.size())) first.push_back(static_cast<int>(r));
  std::unique_ptr<Communicator> leaders;
  if (host->rank() == 0) leaders = flat->group(first);
  return std::make_unique<Hierarchical>(rank, host_of, std::move(host), std::move(flat),
                                        std::move(leaders), std::move(store), timeout);
}

}  // namespace fleetx::comm
