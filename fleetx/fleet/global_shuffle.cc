#include "fleetx/fleet/global_shuffle.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/rng.h"
#include "fleetx/data/order.h"
#include "fleetx/data/packed_samples.h"

namespace fleetx::fleet {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 15;  // samples of a worker: bounds the memory of messages

void check_same_slots(const data::SampleStore& own, comm::Communicator& workers) {
  uint64_t hash = 0;
  for (const data::Slot& slot : own.slots())
    hash = mix(hash, stable_hash(str(slot.name, " ", name_of(slot.dtype), " ", slot.width)));
  std::vector<uint64_t> all(static_cast<size_t>(workers.size()));
  workers.all_gather(&hash, all.data(), 1, i64);
  for (size_t rank = 1; rank < all.size(); ++rank)
    check_arg(all[rank] == all[0], "global_shuffle: workers 0 and ", rank,
              " have different slots in use_var");
}

// Of the samples of all workers, in order of rank, each in an order of its own, every world-th goes
// to the same worker: random ones, and as many to each.
class Dealer {
 public:
  Dealer(int64_t size, comm::Communicator& workers, uint64_t seed, int64_t round)
      : world_(static_cast<size_t>(workers.size())),
        order_(data::shuffled(size, mix(seed, static_cast<uint64_t>(workers.rank())), round)) {
    std::vector<int64_t> sizes(world_);
    workers.all_gather(&size, sizes.data(), 1, i64);
    for (int rank = 0; rank < workers.rank(); ++rank) before_ += sizes[static_cast<size_t>(rank)];
  }

  // The numbers of samples at places first to first + n of the order, by the worker they go to.
  std::vector<std::vector<int64_t>> deal(int64_t first, int64_t n) const {
    std::vector<std::vector<int64_t>> out(world_);
    for (int64_t i = first; i < first + n; ++i)
      out[static_cast<size_t>(before_ + i) % world_].push_back(order_[static_cast<size_t>(i)]);
    return out;
  }

 private:
  size_t world_;
  std::vector<int64_t> order_;
  int64_t before_ = 0;  // samples of the workers with lower ranks
};

struct Part {
  int64_t samples = 0, bytes = 0;
};

// What goes to each worker, and back: parts of equal size, as all_to_all wants them.
class Exchange {
 public:
  explicit Exchange(comm::Communicator& workers)
      : workers_(workers), world_(static_cast<size_t>(workers.size())) {}

  void run(const std::vector<std::string>& messages, const std::vector<int64_t>& samples,
           data::SampleStore& to) {
    std::vector<Part> sent(world_), received(world_);
    for (size_t i = 0; i < world_; ++i)
      sent[i] = {samples[i], static_cast<int64_t>(messages[i].size())};
    workers_.all_to_all(sent.data(), received.data(), sizeof(Part) / sizeof(int64_t), i64);
    int64_t most = 0;
    for (const Part& part : sent) most = std::max(most, part.bytes);
    workers_.all_reduce(&most, 1, i64, comm::ReduceOp::kMax);
    if (most == 0) return;
    const auto stride = static_cast<size_t>(most);
    out_.resize(world_ * stride);
    in_.resize(world_ * stride);
    for (size_t i = 0; i < world_; ++i)
      std::memcpy(out_.data() + i * stride, messages[i].data(), messages[i].size());
    workers_.all_to_all(out_.data(), in_.data(), most, u8);
    for (size_t i = 0; i < world_; ++i)
      if (received[i].samples > 0)
        unpack({in_.data() + i * stride, static_cast<size_t>(received[i].bytes)},
               received[i].samples, str("samples from worker ", i), to);
  }

 private:
  static void unpack(std::string_view bytes, int64_t samples, const std::string& from,
                     data::SampleStore& to) {
    const data::PackedSamples packed(bytes, samples, to.slots(), from);
    std::vector<size_t> which(to.slots().size());
    for (size_t i = 0; i < which.size(); ++i) which[i] = i;
    data::Samples unpacked(to.slots());
    packed.read(0, samples, which, unpacked);
    to.append(unpacked);
  }

  comm::Communicator& workers_;
  size_t world_;
  std::string out_, in_;
};

}  // namespace

data::SampleStore global_shuffle(const data::SampleStore& own, comm::Communicator& workers,
                                 uint64_t seed, int64_t round) {
  check_same_slots(own, workers);
  const Dealer dealer(own.size(), workers, seed, round);
  data::SampleStore dealt(own.slots());
  int64_t times = (own.size() + kAtOnce - 1) / kAtOnce;
  workers.all_reduce(&times, 1, i64, comm::ReduceOp::kMax);
  Exchange exchange(workers);
  for (int64_t t = 0; t < times; ++t) {
    const int64_t first = std::min(t * kAtOnce, own.size());
    const auto numbers = dealer.deal(first, std::min(kAtOnce, own.size() - first));
    std::vector<std::string> messages(numbers.size());
    std::vector<int64_t> samples(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i].empty()) continue;
      data::Samples part(own.slots());
      own.gather(numbers[i], part);
      messages[i] = data::pack(part);
      samples[i] = part.count;
    }
    exchange.run(messages, samples, dealt);
  }
  // Another order than the one that dealt them out.
  dealt.shuffle(mix(~seed, static_cast<uint64_t>(workers.rank())), round);
  return dealt;
}

}  // namespace fleetx::fleet
