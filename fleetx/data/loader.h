// Batches of a Dataset, epoch after epoch: shuffled, shared between workers, read ahead by
// background threads. What next() returns depends only on the data set, the options and the
// position, never on timing, so a run that saved position() and seeks to it goes on with exactly
// the same batch.
//
//   Loader loader(dataset, {.batch = 64, .shuffle = true, .seed = 1});
//   for (int64_t i = 0; i < loader.batches(); ++i) { Batch batch = loader.next(); ... }
//
// One thread uses a Loader. The destructor waits for the background threads, which stop after the
// sample they are at.
#pragma once

#include <memory>

#include "fleetx/data/dataset.h"
#include "fleetx/data/order.h"

namespace fleetx::data {

struct LoaderOptions {
  int64_t batch = 32;  // samples per batch and worker
  bool shuffle = false;
  bool drop_last = false;  // leave out an incomplete last batch
  uint64_t seed = 0;
  int rank = 0;  // this worker's place among `world`
  int world = 1;
  Uneven uneven = Uneven::kPad;
  int threads = 1;   // that read ahead; 0: next() reads itself
  int prefetch = 4;  // batches that may be ready or in the making at any time
};

// `offset` counts samples of this epoch that all workers together have been given, so that it has
// the same meaning for another number of workers or another batch size.
struct Position {
  int64_t epoch = 0;
  int64_t offset = 0;
  bool operator==(const Position&) const = default;
};

class Loader {
 public:
  // The reason for shared_ptr: a train and a test loader may look at the same data.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  int64_t batches() const;  // of one epoch, on this worker
  // The next batch; after the last one of an epoch comes the first of the next. An error in the
  // data set is thrown here, in the place of the batch that it spoiled.
  Batch next();
  // Of the batch that next() will return.
  Position position() const;
  void seek(Position position);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleetx::data
