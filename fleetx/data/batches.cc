#include "fleetx/data/batches.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "fleetx/base/interrupt.h"
#include "fleetx/base/log.h"

namespace fleetx::data {

class Batches::Impl {
 public:
  Impl(std::vector<Slot> slots, int64_t batch,
       std::vector<std::unique_ptr<SampleProducer>> producers, int ahead)
      : slots_(std::move(slots)), batch_(batch), ahead_(static_cast<size_t>(ahead)), rest_(slots_) {
    check_slots(slots_);
    check_arg(batch_ > 0, "batches of ", batch_, " samples; there must be at least one");
    for (auto& p : producers) lines_.push_back(std::make_unique<Line>(std::move(p)));
    for (auto& line : lines_) line->thread = std::thread([this, l = line.get()] { work(*l); });
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    freed_.notify_all();
    for (auto& line : lines_) line->thread.join();
  }

  const std::vector<Slot>& slots() const { return slots_; }

  std::optional<Samples> next() {
    while (ended_ < lines_.size()) {
      if (rest_.count >= batch_) return cut_rest(batch_);
      Line& line = *lines_[turn_];
      Samples samples = line.ended ? Samples(slots_) : take(line);
      turn_ = (turn_ + 1) % lines_.size();
      if (samples.count == batch_) return samples;
      // The last of its thread. Those of all threads become whole batches here.
      ended_ += !std::exchange(line.ended, true);
      rest_.append(samples, 0, samples.count);
    }
    if (rest_.count > 0) return cut_rest(std::min(batch_, rest_.count));
    report();
    return std::nullopt;
  }

  int64_t skipped() const {
    int64_t n = 0;
    for (const auto& line : lines_) n += line->producer->skipped();
    return n;
  }

 private:
  // From one thread to the caller.
  struct Line {
    explicit Line(std::unique_ptr<SampleProducer> p) : producer(std::move(p)) {}
    std::unique_ptr<SampleProducer> producer;
    std::thread thread;
    std::deque<Samples> ready;  // these two under the mutex
    std::exception_ptr error;   // after all that is ready
    bool ended = false;         // for the caller
  };

  void work(Line& line) {
    for (bool more = true; more;) {
      {
        std::unique_lock lock(mutex_);
        freed_.wait(lock, [&] { return stop_ || line.ready.size() < ahead_; });
        if (stop_) return;
      }
      Samples samples(slots_);
      std::exception_ptr error;
      try {
        samples.reserve(std::min<int64_t>(batch_, 1 << 16));
        line.producer->fill(batch_, stop_, samples);
      } catch (...) {
        error = std::current_exception();
      }
      more = !error && samples.count == batch_;
      const std::scoped_lock lock(mutex_);
      if (error)
        line.error = error;
      else
        line.ready.push_back(std::move(samples));
      filled_.notify_one();
    }
  }

  Samples take(Line& line) {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    while (!filled_.wait_for(lock, 50ms, [&] { return !line.ready.empty() || line.error; })) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
    if (line.ready.empty()) std::rethrow_exception(line.error);
    Samples samples = std::move(line.ready.front());
    line.ready.pop_front();
    lock.unlock();
    freed_.notify_all();
    return samples;
  }

  Samples cut_rest(int64_t n) {
    Samples samples(slots_), left(slots_);
    samples.append(rest_, 0, n);
    left.append(rest_, n, rest_.count - n);
    rest_ = std::move(left);
    return samples;
  }

  void report() {
    if (reported_ || skipped() == 0) return;
    reported_ = true;
    std::string first;
    for (const auto& line : lines_)
      if (first.empty()) first = line->producer->first_skipped();
    log::warning("data", skipped(), " damaged lines were left out; the first: ", first);
  }

  const std::vector<Slot> slots_;
  const int64_t batch_;
  const size_t ahead_;
  Samples rest_;      // of threads that have ended
  size_t turn_ = 0;   // the thread whose batch is next
  size_t ended_ = 0;  // threads of which all batches are taken
  bool reported_ = false;

  std::mutex mutex_;
  std::condition_variable filled_, freed_;
  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<Line>> lines_;
};

namespace {

class FileProducer final : public SampleProducer {
 public:
  FileProducer(std::vector<std::string> files, const ReadOptions& options)
      : files_(std::move(files)),
        options_{.format = options.format,
                 .command = options.command,
                 .bad_lines = options.bad_lines,
                 .share = options.share} {}

  void fill(int64_t n, const std::atomic<bool>& stop, Samples& to) override {
    while (to.count < n && !stop) {
      if (!file_) {
        if (next_ == files_.size()) return;
        options_.stop = &stop;
        file_ = std::make_unique<SampleFile>(files_[next_++], options_);
      }
      if (file_->read(n - to.count, to) == 0) close();
    }
  }
  int64_t skipped() const override { return skipped_; }
  std::string first_skipped() const override { return first_skipped_; }

 private:
  void close() {
    skipped_ += file_->skipped();
    if (first_skipped_.empty()) first_skipped_ = file_->first_skipped();
    file_.reset();
  }

  std::vector<std::string> files_;
  SampleFileOptions options_;
  size_t next_ = 0;
  std::unique_ptr<SampleFile> file_;
  int64_t skipped_ = 0;
  std::string first_skipped_;
};

class StoreProducer final : public SampleProducer {
 public:
  explicit StoreProducer(std::shared_ptr<const SampleStore> store)
      : store_(std::move(store)), order_(store_->order()), size_(store_->size()) {}

  void fill(int64_t n, const std::atomic<bool>&, Samples& to) override {
    n = std::min(n, size_ - at_);
    const auto first = static_cast<size_t>(at_), count = static_cast<size_t>(n);
    at_ += n;
    if (order_) return store_->gather(std::span(*order_).subspan(first, count), to);
    numbers_.resize(count);
    std::iota(numbers_.begin(), numbers_.end(), static_cast<int64_t>(first));
    store_->gather(numbers_, to);
  }

 private:
  std::shared_ptr<const SampleStore> store_;
  std::shared_ptr<const std::vector<int64_t>> order_;
  int64_t size_, at_ = 0;
  std::vector<int64_t> numbers_;
};

}  // namespace

Batches::Batches(std::vector<Slot> slots, int64_t batch,
                 std::vector<std::unique_ptr<SampleProducer>> producers, int ahead)
    : impl_(std::make_unique<Impl>(std::move(slots), batch, std::move(producers), ahead)) {}
Batches::~Batches() = default;
const std::vector<Slot>& Batches::slots() const { return impl_->slots(); }
std::optional<Samples> Batches::next() { return impl_->next(); }
int64_t Batches::skipped() const { return impl_->skipped(); }

std::unique_ptr<Batches> read_files(const ReadOptions& options) {
  check_arg(!options.files.empty(), "the data set has no files: call set_filelist");
  check_arg(options.threads > 0, "a data set of ", options.threads, " reader threads");
  const size_t threads = std::min(static_cast<size_t>(options.threads), options.files.size());
  std::vector<std::vector<std::string>> shares(threads);
  for (size_t i = 0; i < options.files.size(); ++i) shares[i % threads].push_back(options.files[i]);
  std::vector<std::unique_ptr<SampleProducer>> producers;
  for (auto& share : shares)
    producers.push_back(std::make_unique<FileProducer>(std::move(share), options));
  return std::make_unique<Batches>(options.format->slots(), options.batch, std::move(producers));
}

std::unique_ptr<Batches> read_store(std::shared_ptr<const SampleStore> store, int64_t batch) {
  std::vector<std::unique_ptr<SampleProducer>> producers;
  const std::vector<Slot> slots = store->slots();
  producers.push_back(std::make_unique<StoreProducer>(std::move(store)));
  return std::make_unique<Batches>(slots, batch, std::move(producers));
}

}  // namespace fleetx::data
