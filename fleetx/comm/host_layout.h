// Which ranks of a group share a host.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace fleetx::comm {

class HostLayout {
 public:
  // `host_of[r]` numbers the host of rank r, from 0 in the order of first ranks.
  explicit HostLayout(std::vector<int> host_of)
      : host_of_(std::move(host_of)), place_(host_of_.size()) {
    for (size_t r = 0; r < host_of_.size(); ++r) {
      const auto h = static_cast<size_t>(host_of_[r]);
      if (h >= ranks_.size()) ranks_.resize(h + 1);
      place_[r] = static_cast<int>(ranks_[h].size());
      ranks_[h].push_back(static_cast<int>(r));
    }
  }
  // Every rank on a host of its own.
  static HostLayout one_rank_each(int size) {
    std::vector<int> host_of(static_cast<size_t>(size));
    std::iota(host_of.begin(), host_of.end(), 0);
    return HostLayout(std::move(host_of));
  }

  int size() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  // A rank's number among those of its host.
  int place_of(int rank) const { return place_[static_cast<size_t>(rank)]; }
  const std::vector<int>& ranks_of(int host) const { return ranks_[static_cast<size_t>(host)]; }
  int leader_of(int host) const { return ranks_of(host)[0]; }
  // The rank of a host that talks to `rank` of another host, so that all ranks share the traffic.
  int partner_of(int rank, int host) const {
    const auto& ranks = ranks_of(host);
    return ranks[static_cast<size_t>(place_of(rank)) % ranks.size()];
  }

 private:
  std::vector<int> host_of_, place_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace fleetx::comm
