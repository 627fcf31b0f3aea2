#include "fleetx/data/text_batches.h"

#include "fleetx/base/error.h"

namespace fleetx::data {

TextBatches::TextBatches(TextBatchOptions options) : options_(options) {
  check_arg(options.world >= 1 && options.rank >= 0 && options.rank < options.world, "rank ",
            options.rank, " of ", options.world, " workers");
}

void TextBatches::begin_pass(int64_t epoch) {
  check_arg(epoch >= 0, "epoch is ", epoch, "; must not be negative");
  epoch_ = epoch;
  done_ = 0;
  lengths_ = prepare(epoch);
  list_ = length_batches(lengths_, options_.batches, epoch);
  check_arg(!list_.empty(), lengths_.size(), " samples are less than a batch of ",
            options_.batches.batch);
}

int64_t TextBatches::batches() const {
  return (static_cast<int64_t>(list_.size()) + options_.world - 1) / options_.world;
}

double TextBatches::padding() const { return padding_share(lengths_, list_); }

std::optional<Batch> TextBatches::next() {
  if (done_ >= batches()) return std::nullopt;
  const auto place = static_cast<size_t>(done_++ * options_.world + options_.rank);
  return make(list_[place % list_.size()]);
}

}  // namespace fleetx::data
