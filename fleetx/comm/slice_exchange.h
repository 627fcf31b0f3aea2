// The collectives between hosts, as one algorithm. The data is cut into slices, each with an owner:
//
//   1. the contributors send their data of the slice to its owner, who combines it in the order of
//      the tree;
//   2. the owner sends the result to every host that wants it.
//
// All-reduce, reduce-scatter and reduce have all ranks as contributors, in an all-gather only the
// owner has data, in a broadcast only the root. The slices go in chunks, so that both directions of
// every link are busy, a chunk is combined while it is in the caches, and memory stays bounded.
//
// The ranks of a host see each other's memory. For each slice one of them, the owner's partner,
// sends the host's contribution (the sums of nodes of the tree) and writes the result into the
// memory of all. So the ranks of a host share the traffic, and need no synchronization between the
// begin and the end of a call.
#pragma once

#include <vector>

#include "fleetx/comm/communicator.h"
#include "fleetx/comm/host_layout.h"
#include "fleetx/comm/messenger.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {

// The memory of a call, of all ranks of this host by place. Null: this rank has none.
struct HostMemory {
  std::vector<const char*> in;
  std::vector<char*> out;
};

struct Slice {
  int owner = 0;
  // In elements. Where it begins in every rank's input and output.
  int64_t in_begin = 0, out_begin = 0, count = 0;
};

struct SlicePlan {
  enum class Source { kAllRanks, kOwner, kRoot };
  Source source = Source::kAllRanks;
  int root = 0;
  std::vector<Slice> slices{};  // at most one for each owner
  bool owner_keeps = true;      // the result of its slice
  // Which ranks get the results of all slices.
  std::vector<bool> wanted{};
};

// The nodes of the tree as the hosts send them for vectors of a type, in the order of their ranks:
// sums, or the vectors of ranks.
struct HostNodes {
  HostNodes(const HostLayout& layout, int host, DType dtype);

  struct Node {
    RankRange ranks;
    int host = 0;
    bool is_sum = false;
    size_t item = 0;
  };
  std::vector<Node> nodes;
  // Bytes for an element: of all nodes, of those of other hosts, of this host's sums.
  size_t items = 0, foreign_items = 0, own_sum_items = 0;
};

// Memory that is kept from call to call: a short call would spend much of its time on allocations.
struct ExchangeScratch {
  std::vector<char> bytes{};
  std::vector<Operand> operands{};
  std::vector<void*> destinations{};
};

class SliceExchange {
 public:
  struct Labels {
    uint64_t contribution, result;
  };
  SliceExchange(Messenger& messenger, int rank, const HostLayout& layout, const HostNodes& nodes,
                const HostMemory& memory, const Call& call, Labels labels,
                ExchangeScratch& scratch);

  void run(const SlicePlan& plan, Deadline deadline);
  // All-reduce of a short vector: the first ranks of the hosts send it to each other as a whole, in
  // one exchange instead of two.
  void reduce_whole(Deadline deadline);
  // All-reduce of two hosts: each sends all it has, chunk by chunk, and both combine. These are the
  // bytes of owners and their results, in one exchange instead of two.
  void reduce_between_two(Deadline deadline);
  bool can_reduce_between_two() const;
  // What a host receives of a short vector.
  static constexpr size_t kMaxWholeBytes = size_t{64} << 10;
  size_t whole_bytes() const;

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;
  using Node = HostNodes::Node;

  void prepare(const SlicePlan& plan);
  void post_chunk(int64_t k, Deadline deadline);
  void combine_chunk(int64_t k, Deadline deadline);
  void deliver_chunk(int64_t k, Deadline deadline);
  void send_nodes(int to, int64_t begin, int64_t count, char* sums, Transfers& sends);
  void receive_nodes(const Slice& slice, int64_t k);
  void combine_with_peer(int64_t k, const char* received, int64_t begin, int64_t count,
                         Deadline deadline);
  void reduce_nodes(int64_t begin, int64_t count, const char* received,
                    std::span<void* const> destinations);
  void distribute(int64_t begin, size_t bytes, const char* result);

  int64_t count_of(const Slice& slice, int64_t k) const {
    return std::clamp<int64_t>(slice.count - k * chunk_, 0, chunk_);
  }
  const char* in(int rank, int64_t at) const {
    return memory_.in[static_cast<size_t>(layout_.place_of(rank))] +
           static_cast<size_t>(at) * item_;
  }
  char* out(int rank, int64_t at) const {
    return memory_.out[static_cast<size_t>(layout_.place_of(rank))] +
           static_cast<size_t>(at) * item_;
  }
  char* slot(int64_t k) const {
    return scratch_.bytes.data() + static_cast<size_t>(k % slots_) * slot_bytes_;
  }
  bool is_here(int rank) const { return layout_.host_of(rank) == host_; }

  // A contribution is combined, and a result is awaited, this many chunks after it was posted.
  static constexpr int64_t kCombineLag = 6, kDeliverLag = 12, kSlots = kCombineLag + 1;

  Messenger& messenger_;
  const int rank_, host_;
  const HostLayout& layout_;
  const HostNodes& nodes_;
  const HostMemory& memory_;
  const Call& call_;
  const Labels labels_;
  ExchangeScratch& scratch_;
  const size_t item_;

  const SlicePlan* plan_ = nullptr;
  const Slice* own_ = nullptr;
  std::vector<const Slice*> foreign_;  // of other hosts, for which this rank is the partner
  std::vector<int> readers_;           // ranks of other hosts that get the own slice
  std::vector<int> writes_own_, writes_foreign_;  // ranks of this host that get a result
  bool contributes_ = false;
  int64_t chunk_ = 0, chunks_ = 0;
  int64_t slots_ = kSlots;  // chunks for which there is memory
  size_t send_offset_ = 0, result_offset_ = 0, slot_bytes_ = 0;
  // By chunk, modulo the number of them in flight.
  std::vector<Transfers> contributions_, sends_, results_;
};

}  // namespace fleetx::comm
