#include "fleetx/comm/hierarchical.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {

// Reductions keep the order of the ranks: a host's first rank adds the sum of all ranks before it
// (from the host before) to its own vector, the host adds the rest, and so on to the last host,
// from which the result goes back. In pieces, so that all links work at the same time. That order
// exists where hosts hold consecutive ranks; where they do not, the vectors go flat.
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
  ~Hierarchical() override { stop_lane(); }

  std::string_view backend() const override { return "hierarchical"; }
  std::shared_ptr<void> allocate(size_t bytes) override { return host_->allocate(bytes); }

 private:
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr int kUp = 1 << 28, kDown = kUp + 1;  // beyond the tags of users

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

  // Sums of halves and bytes travel in the wider type, so that they are rounded once.
  void all_reduce(const Call& c, Deadline deadline) {
    const DType wide = sum_type(c.dtype);
    const auto piece = static_cast<int64_t>(kPieceBytes / size_of(wide));
    std::vector<char> converted;
    if (wide != c.dtype) {
      converted.resize(static_cast<size_t>(c.count) * size_of(wide));
      convert(c.dtype, c.in, wide, converted.data(), c.count);
    }
    char* const data = wide == c.dtype ? static_cast<char*>(c.out) : converted.data();
    const auto each_piece = [&](const auto& fn) {
      for (int64_t begin = 0; begin < c.count; begin += piece)
        fn(data + static_cast<size_t>(begin) * size_of(wide), std::min(piece, c.count - begin));
    };
    each_piece([&](char* at, int64_t count) { sum_up(c, at, count, wide, deadline); });
    each_piece([&](char* at, int64_t count) {
      const bool last = leads() && leaders_->rank() == leaders_->size() - 1;
      if (leads() && !last) take_result(at, count, wide, deadline);
      host_->perform(Call::broadcast(at, count, wide, 0), deadline);
    });
    if (wide != c.dtype) convert(wide, data, c.dtype, c.out, c.count);
  }

  // This host's part of the sum of a piece, on top of that of the hosts before.
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

  std::unique_ptr<Communicator> make_group(const Some& some) override {
    auto flat = flat_->group(some.ranks);
    std::vector<int> hosts, on_host, host_of;  // hosts in the order of their first rank
    for (const int r : some.ranks) {
      const int h = host_of_[static_cast<size_t>(r)];
      auto at = std::find(hosts.begin(), hosts.end(), h);
      if (at == hosts.end()) at = hosts.insert(hosts.end(), h);
      host_of.push_back(static_cast<int>(at - hosts.begin()));
      if (h == host_of_[static_cast<size_t>(rank())])
        on_host.push_back(place_[static_cast<size_t>(r)]);
    }
    auto host = host_->group(on_host);
    if (hosts.size() == 1) return host;
    return make_hierarchical(some.own, host_of, std::move(host), std::move(flat), store(),
                             timeout());
  }

  const std::vector<int> host_of_;
  std::vector<int> place_;  // of each rank inside its host
  bool consecutive_ = false;
  std::unique_ptr<Communicator> host_, flat_, leaders_;  // leaders_: only where this rank is one
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
