#include "fleetx/comm/hierarchical.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/comm/reduce.h"

namespace fleetx::comm {
namespace {

// Vectors that the other ranks of the host cannot see are copied into memory that they can, this
// much at a time.
constexpr size_t kStagedBytes = size_t{16} << 20;

}  // namespace

class Hierarchical final : public Communicator {
 public:
  Hierarchical(int rank, HostLayout layout, std::unique_ptr<Shared> host,
               std::unique_ptr<Exchange> flat, std::shared_ptr<StoreClient> store,
               Milliseconds timeout)
      : Communicator(rank, flat->members(), std::move(store), timeout),
        layout_(std::move(layout)),
        host_(std::move(host)),
        flat_(std::move(flat)) {}
  ~Hierarchical() override { stop_queue(); }

  std::string_view backend() const override { return "hierarchical"; }
  std::shared_ptr<void> allocate(size_t bytes) override { return host_->allocate(bytes); }
  Traffic traffic() const override { return flat_->traffic(); }

 private:
  bool can_be_interrupted() const override {
    return static_cast<const Communicator&>(*flat_).can_be_interrupted();
  }

  void perform(const Call& c, Deadline deadline) override {
    if (c.kind == CallKind::kSend || c.kind == CallKind::kRecv) {
      if (layout_.host_of(c.peer) != layout_.host_of(rank())) return flat_->message(c, deadline);
      Call inside = c;
      inside.peer = layout_.place_of(c.peer);
      return static_cast<Communicator&>(*host_).perform(inside, deadline);
    }
    if (host_->size() == 1)
      return flat_->collective(
          c, layout_, {{static_cast<const char*>(c.in)}, {static_cast<char*>(c.out)}}, deadline);
    const auto memory = host_->open(c, reads(c), writes(c), deadline);
    if (memory) {
      flat_->collective(c, layout_, *memory, deadline);
      return host_->close(deadline);
    }
    staged(c, deadline);
  }

  // How many parts of `count` elements a rank brings and gets.
  int parts_in(const Call& c) const {
    return c.kind == CallKind::kReduceScatter || c.kind == CallKind::kAllToAll ? size() : 1;
  }
  int parts_out(const Call& c) const {
    return c.kind == CallKind::kAllGather || c.kind == CallKind::kAllToAll ? size() : 1;
  }
  size_t bytes_of(const Call& c, int parts) const {
    return static_cast<size_t>(c.count) * size_of(c.dtype) * static_cast<size_t>(parts);
  }
  // What the ranks of this host bring and get, by place; 0: nothing.
  std::vector<size_t> reads(const Call& c) const {
    std::vector<size_t> bytes;
    for (const int r : layout_.ranks_of(layout_.host_of(rank())))
      bytes.push_back(c.kind != CallKind::kBroadcast || r == c.peer ? bytes_of(c, parts_in(c)) : 0);
    return bytes;
  }
  std::vector<size_t> writes(const Call& c) const {
    std::vector<size_t> bytes;
    for (const int r : layout_.ranks_of(layout_.host_of(rank())))
      bytes.push_back(c.kind != CallKind::kReduce || r == c.peer ? bytes_of(c, parts_out(c)) : 0);
    return bytes;
  }

  // The call in blocks, each in shared memory.
  void staged(const Call& c, Deadline deadline) {
    const size_t item = size_of(c.dtype);
    const auto in = static_cast<size_t>(parts_in(c)), out = static_cast<size_t>(parts_out(c));
    const auto room = static_cast<int64_t>(kStagedBytes / ((in + out) * item));
    const int64_t block = std::clamp<int64_t>(c.count, 1, std::max<int64_t>(room, 64));
    const size_t needed = static_cast<size_t>(block) * item * (in + out);
    if (stage_bytes_ < needed) {
      stage_ = host_->allocate(needed);
      stage_bytes_ = needed;
    }
    char* const stage_in = static_cast<char*>(stage_.get());
    // A vector that is both brought and got stays in its place.
    const bool in_place = in == out && c.kind != CallKind::kAllToAll;
    char* const stage_out = in_place ? stage_in : stage_in + static_cast<size_t>(block) * item * in;
    const auto place = static_cast<size_t>(layout_.place_of(rank()));
    const bool brings = reads(c)[place] > 0, gets = writes(c)[place] > 0;
    for (int64_t begin = 0; begin < c.count; begin += block) {
      const int64_t count = std::min(block, c.count - begin);
      const size_t bytes = static_cast<size_t>(count) * item;
      const auto at = [&](size_t part) {
        return (part * static_cast<size_t>(c.count) + static_cast<size_t>(begin)) * item;
      };
      for (size_t p = 0; brings && p < in; ++p)
        copy(stage_in + p * bytes, static_cast<const char*>(c.in) + at(p), bytes);
      Call inside = c;
      inside.in = stage_in;
      inside.out = stage_out;
      inside.count = count;
      const auto memory = host_->open(inside, reads(inside), writes(inside), deadline);
      FLEETX_CHECK(memory.has_value(), "staging memory is not shared");
      flat_->collective(inside, layout_, *memory, deadline);
      host_->close(deadline);
      for (size_t p = 0; gets && p < out; ++p)
        copy(static_cast<char*>(c.out) + at(p), stage_out + p * bytes, bytes);
    }
  }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    std::unique_ptr<Communicator> flat = flat_->group(subgroup.ranks);
    std::vector<int> hosts, on_host, host_of;  // hosts in the order of their first rank
    for (const int r : subgroup.ranks) {
      const int h = layout_.host_of(r);
      auto at = std::find(hosts.begin(), hosts.end(), h);
      if (at == hosts.end()) at = hosts.insert(hosts.end(), h);
      host_of.push_back(static_cast<int>(at - hosts.begin()));
      if (h == layout_.host_of(rank())) on_host.push_back(layout_.place_of(r));
    }
    std::unique_ptr<Communicator> host = host_->group(on_host);
    if (hosts.size() == 1) return host;
    // A group of a backend is of the same backend.
    return make_hierarchical(
        subgroup.own, host_of, std::unique_ptr<Shared>(static_cast<Shared*>(host.release())),
        std::unique_ptr<Exchange>(static_cast<Exchange*>(flat.release())), store(), timeout());
  }

  const HostLayout layout_;
  std::unique_ptr<Shared> host_;
  std::unique_ptr<Exchange> flat_;
  std::shared_ptr<void> stage_;
  size_t stage_bytes_ = 0;
};

std::unique_ptr<Communicator> make_hierarchical(int rank, const std::vector<int>& host_of,
                                                std::unique_ptr<Shared> host,
                                                std::unique_ptr<Exchange> flat,
                                                std::shared_ptr<StoreClient> store,
                                                Milliseconds timeout) {
  return std::make_unique<Hierarchical>(rank, HostLayout(host_of), std::move(host), std::move(flat),
                                        std::move(store), timeout);
}

}  // namespace fleetx::comm
