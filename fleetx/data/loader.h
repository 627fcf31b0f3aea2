// Batches of a Dataset, epoch after epoch: shuffled, sharded between workers, prefetched by
// background threads. The result of next() depends only on the data set, the options and the
// position, never on timing: a run that saved position() and seeks to it continues with the same
// batch.
//
//   Loader loader(dataset, {.batch = 64, .shuffle = true, .seed = 1});
//   for (int64_t i = 0; i < loader.batches(); ++i) { Batch batch = loader.next(); ... }
//
// Not thread-safe. The destructor joins the background threads, which stop after their current
// sample.
#pragma once

#include <memory>

#include "fleetx/data/dataset.h"
#include "fleetx/data/order.h"

namespace fleetx::data {

struct LoaderOptions {
  int64_t batch = 32;  // samples per batch and worker
  bool shuffle = false;
  bool drop_last = false;  // drop an incomplete last batch
  uint64_t seed = 0;
  int rank = 0;  // of this worker, among `world`
  int world = 1;
  Uneven uneven = Uneven::kPad;
  int threads = 1;   // that prefetch; 0: next() reads on the calling thread
  int prefetch = 4;  // limit of batches that are ready or in progress
};

// `offset` counts the samples of this epoch that all workers together have consumed. So it does not
// depend on the number of workers or the batch size.
struct Position {
  int64_t epoch = 0;
  int64_t offset = 0;
  bool operator==(const Position&) const = default;
};

class Loader {
 public:
  // shared_ptr, because a training and a test loader may use the same data.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  int64_t batches() const;  // of one epoch, on this worker
  // The next batch; after the last one of an epoch comes the first of the next. An error of the
  // data set is thrown here, instead of the batch that it affects.
  Batch next();
  // Of the batch that next() will return.
  Position position() const;
  void seek(Position position);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleetx::data
