#include "fleetx/data/loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/data/order.h"

namespace fleetx::data {
namespace {

using Order = std::shared_ptr<const std::vector<int64_t>>;

// The sample orders of the last two epochs: near the end of one, threads already read the next.
class OrderCache {
 public:
  Order get(int64_t n, uint64_t seed, int64_t epoch) {
    const std::scoped_lock lock(mutex_);
    Entry& entry = entries_[epoch % 2];
    if (!entry.order || entry.epoch != epoch)
      entry = {epoch, std::make_shared<const std::vector<int64_t>>(shuffled(n, seed, epoch))};
    return entry.order;
  }

 private:
  struct Entry {
    int64_t epoch = -1;
    Order order;
  };
  std::mutex mutex_;
  Entry entries_[2];
};

// Reuses the memory of released batches: the kernel would have to clear fresh pages, which takes a
// tenth of the decoding time. Batches may outlive the loader.
class Recycler : public std::enable_shared_from_this<Recycler> {
 public:
  Tensor tensor(DType dtype, const Shape& shape) {
    const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
    Buffer buffer = take(bytes);
    void* data = buffer.data();
    // The deleter keeps the pool alive.
    std::shared_ptr<void> owner(
        data, [self = shared_from_this(), buffer](void*) { self->give_back(buffer); });
    return Tensor::view(dtype, shape, data, std::move(owner));
  }

 private:
  static constexpr size_t kMaxKept = 64;

  Buffer take(size_t bytes) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = std::find_if(free_.begin(), free_.end(),
                                      [&](const Buffer& b) { return b.bytes() == bytes; });
      if (found != free_.end()) {
        Buffer buffer = std::move(*found);
        free_.erase(found);
        return buffer;
      }
    }
    return Buffer::allocate(bytes);
  }

  void give_back(Buffer buffer) {
    const std::scoped_lock lock(mutex_);
    if (free_.size() < kMaxKept) free_.push_back(std::move(buffer));
  }

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
      : dataset_(std::move(dataset)),
        options_(options),
        shard_{options.rank, options.world, options.uneven} {
    const LoaderOptions& o = options_;
    check_arg(dataset_ != nullptr, "loader: no data set");
    check_arg(dataset_->size() > 0, "loader: the data set is empty");
    check_arg(o.batch >= 1, "loader: batch is ", o.batch, "; must be at least 1");
    check_arg(o.world >= 1 && o.rank >= 0 && o.rank < o.world, "loader: rank ", o.rank, " of ",
              o.world, " workers is not possible");
    check_arg(o.threads >= 0 && o.threads <= 256, "loader: threads is ", o.threads,
              "; must be between 0 and 256");
    check_arg(o.prefetch >= 1 && o.prefetch <= 10000, "loader: prefetch is ", o.prefetch,
              "; must be between 1 and 10000");
    const int64_t share = shard_.size(dataset_->size());
    check_arg(share > 0, "loader: ", dataset_->size(), " samples are too few for ", o.world,
              " workers where those that cannot be shared equally are dropped");
    check_arg(!o.drop_last || share >= o.batch, "loader: ", dataset_->size(), " samples over ",
              o.world, " workers do not fill one batch of ", o.batch, " and drop_last is set");
  }

  ~Impl() { stop(); }

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }

  // Batches of an epoch that begins with this worker's sample `first`.
  int64_t batches(int64_t first = 0) const {
    const int64_t left = shard_.size(dataset_->size()) - first;
    return options_.drop_last ? left / options_.batch
                              : (left + options_.batch - 1) / options_.batch;
  }

  Position position() const {
    const Place p = place_of(taken_);
    return {p.epoch, p.first * options_.world};
  }

  void seek(Position position) {
    check_arg(position.epoch >= 0 && position.offset >= 0, "loader: position (epoch ",
              position.epoch, ", offset ", position.offset, ") is not possible");
    stop();
    // If the number of workers has changed, the offset may be inside a round of all workers; that
    // round is repeated.
    start_ = {position.epoch, position.offset / options_.world};
    if (batches(start_.first) <= 0) start_ = {position.epoch + 1, 0};
    taken_ = 0;
  }

  Batch next() {
    if (options_.threads == 0) {
      Batch batch = make(place_of(taken_));
      ++taken_;
      return batch;
    }
    if (threads_.empty()) start();
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[static_cast<size_t>(taken_) % slots_.size()];
    filled_.wait(lock, [&] { return slot.ticket == taken_; });
    ++taken_;
    Batch batch = std::move(slot.batch);
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    lock.unlock();
    freed_.notify_all();
    if (error) std::rethrow_exception(error);
    return batch;
  }

 private:
  struct Place {
    int64_t epoch = 0;
    int64_t first = 0;  // this worker's first sample of the batch
  };
  struct Slot {
    int64_t ticket = -1;
    Batch batch;
    std::exception_ptr error;
  };

  // The position of the ticket-th batch after start_.
  Place place_of(int64_t ticket) const {
    const int64_t in_first = batches(start_.first);
    if (ticket < in_first) return {start_.epoch, start_.first + ticket * options_.batch};
    ticket -= in_first;
    return {start_.epoch + 1 + ticket / batches(), ticket % batches() * options_.batch};
  }

  Batch make(const Place& place) {
    const int64_t n = dataset_->size();
    const int64_t count = std::min(options_.batch, shard_.size(n) - place.first);
    const auto& fields = dataset_->fields();
    Batch batch;
    batch.size = count;
    std::vector<char*> memory;
    std::vector<size_t> stride;
    for (const Field& f : fields) {
      std::vector<int64_t> dims{count};
      dims.insert(dims.end(), f.shape.begin(), f.shape.end());
      const Tensor& t =
          batch.feeds.emplace_back(f.name, memory_->tensor(f.dtype, Shape(std::move(dims)))).second;
      memory.push_back(static_cast<char*>(t.raw()));
      stride.push_back(t.bytes() / static_cast<size_t>(count));
    }
    const Order order = options_.shuffle ? orders_.get(n, options_.seed, place.epoch) : nullptr;
    std::vector<void*> out(fields.size());
    for (int64_t i = 0; i < count && !stop_; ++i) {
      const int64_t at = shard_.place(place.first, i, count, n);
      for (size_t f = 0; f < out.size(); ++f)
        out[f] = memory[f] + static_cast<size_t>(i) * stride[f];
      dataset_->read({order ? (*order)[static_cast<size_t>(at)] : at, place.epoch, options_.seed},
                     out);
    }
    return batch;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      freed_.wait(lock, [&] { return stop_ || ready_for_more(); });
      if (stop_) return;
      const int64_t ticket = issued_++;
      lock.unlock();
      Slot done;
      try {
        done.batch = make(place_of(ticket));
      } catch (...) {
        done.error = std::current_exception();
      }
      done.ticket = ticket;
      lock.lock();
      slots_[static_cast<size_t>(ticket) % slots_.size()] = std::move(done);
      filled_.notify_all();
    }
  }

  bool ready_for_more() const { return issued_ < taken_ + static_cast<int64_t>(slots_.size()); }

  void start() {
    slots_.clear();
    slots_.resize(static_cast<size_t>(std::max(options_.prefetch, options_.threads)));
    issued_ = taken_;
    stop_ = false;
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    freed_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    stop_ = false;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const Shard shard_;
  const std::shared_ptr<Recycler> memory_ = std::make_shared<Recycler>();
  OrderCache orders_;
  Place start_;  // fixed while threads run

  std::mutex mutex_;
  std::condition_variable filled_, freed_;
  int64_t taken_ = 0;               // written under the mutex, by the user's thread only
  int64_t issued_ = 0;              // tickets given to threads
  std::atomic<bool> stop_ = false;  // set under the mutex
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
Loader::~Loader() = default;
const Dataset& Loader::dataset() const { return impl_->dataset(); }
const LoaderOptions& Loader::options() const { return impl_->options(); }
int64_t Loader::batches() const { return impl_->batches(); }
Batch Loader::next() { return impl_->next(); }
Position Loader::position() const { return impl_->position(); }
void Loader::seek(Position position) { impl_->seek(position); }

}  // namespace fleetx::data
