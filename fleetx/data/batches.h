// Batches of samples, made by background threads while the caller computes.
//
//   auto batches = read_files({.files = files, .slots = slots, .format = format, .batch = 512});
//   while (auto batch = batches->next()) ...
//
// The result depends on the options only, never on timing. With one thread the samples come in the
// order of the files. With n threads, thread t reads files t, t + n, ..., and the batches are taken
// from the threads in turn. All batches but the last have `batch` samples, over the ends of files.
//
// An error of a reader is thrown by next() where its batch would have been. next() can be
// interrupted (base/interrupt.h). The destructor ends threads and commands within 0.1 s.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/data/sample_file.h"
#include "fleetx/data/sample_store.h"

namespace fleetx::data {

// What one background thread does.
class SampleProducer {
 public:
  virtual ~SampleProducer() = default;
  // Adds n samples; fewer: the end, or stopped.
  virtual void fill(int64_t n, const std::atomic<bool>& stop, Samples& to) = 0;
  // Damaged lines so far, and the first.
  virtual int64_t skipped() const { return 0; }
  virtual std::string first_skipped() const { return ""; }
};

class Batches {
 public:
  // `ahead`: batches that each producer keeps ready.
  Batches(std::vector<Slot> slots, int64_t batch,
          std::vector<std::unique_ptr<SampleProducer>> producers, int ahead = 4);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  const std::vector<Slot>& slots() const;
  // Nothing: the end. Then a warning says how many lines were skipped, if any.
  std::optional<Samples> next();
  // Lines that were left out; after the end of all.
  int64_t skipped() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct ReadOptions {
  std::vector<std::string> files{};
  std::shared_ptr<const LineFormat> format{};
  std::string command{};  // each file goes through it
  int64_t batch = 1;
  int threads = 1;
  BadLines bad_lines = BadLines::kFail;
  Share share{};  // of every file
};
std::unique_ptr<Batches> read_files(const ReadOptions& options);
// In the order that the store has now. shared_ptr, because the store may be released before.
std::unique_ptr<Batches> read_store(std::shared_ptr<const SampleStore> store, int64_t batch);

}  // namespace fleetx::data
